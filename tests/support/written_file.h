// Files of the project that are made from the code: compared, or written.
#ifndef DFL_TESTS_SUPPORT_WRITTEN_FILE_H_
#define DFL_TESTS_SUPPORT_WRITTEN_FILE_H_

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace dfl::testing_support {

// That the file at `path` holds `text`. With DFL_UPDATE_SAMPLE in the
// environment it is written first.
inline void ExpectIsFile(const std::string& path, const std::string& text) {
  if (std::getenv("DFL_UPDATE_SAMPLE") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream in(path);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(found, text) << "run this test with DFL_UPDATE_SAMPLE=1 to write "
                         << path;
}

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_WRITTEN_FILE_H_
