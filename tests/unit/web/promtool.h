// Runs Prometheus' own checker, where it is installed.
#ifndef DFL_TESTS_UNIT_WEB_PROMTOOL_H_
#define DFL_TESTS_UNIT_WEB_PROMTOOL_H_

#include <array>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace dfl::web {

inline bool HasPromtool() { return DFL_PROMTOOL[0] != '\0'; }

struct Checked {
  int code = 0;  // as pclose has it
  std::string out;
};

// `arguments` as a shell reads them.
inline Checked RunPromtool(const std::string& arguments) {
  Checked checked;
  FILE* pipe =
      popen(absl::StrCat(DFL_PROMTOOL, " ", arguments, " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "it does not start"};
  std::array<char, 4096> buffer;
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    checked.out.append(buffer.data(), got);
  }
  checked.code = pclose(pipe);
  return checked;
}

}  // namespace dfl::web

#endif  // DFL_TESTS_UNIT_WEB_PROMTOOL_H_
