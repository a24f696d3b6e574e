// Data files in IDX format, images and labels, plain or gzip.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(idx)(absl::string_view bytes) {
  CheckTwoFiles(data::Format::kIdx, bytes);
}

}  // namespace dfl::fuzz
