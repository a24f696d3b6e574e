// Writes files of the corpus: FOLDER/TARGET/NAME.
#ifndef DFL_TESTS_FUZZ_CORPUS_WRITER_H_
#define DFL_TESTS_FUZZ_CORPUS_WRITER_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "daemon/base/check.h"

namespace dfl::fuzz {

class CorpusWriter {
 public:
  explicit CorpusWriter(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  void Put(const std::string& target, const std::string& name,
           absl::string_view bytes) const {
    std::filesystem::create_directories(folder_ / target);
    std::ofstream file(folder_ / target / name,
                       std::ios::binary | std::ios::trunc);
    file << bytes;
    file.close();
    DFL_CHECK(file.good());
  }

 private:
  const std::filesystem::path folder_;
};

// Each puts what its name says.
void PutMessages(const CorpusWriter& corpus);    // between nodes
void PutFiles(const CorpusWriter& corpus);       // of a node and of models
void PutAlgorithms(const CorpusWriter& corpus);  // states of algorithms

}  // namespace dfl::fuzz

#endif  // DFL_TESTS_FUZZ_CORPUS_WRITER_H_
