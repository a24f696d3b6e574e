// Data files of NumPy's: an array of features and one of labels.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(npy)(absl::string_view bytes) {
  CheckTwoFiles(data::Format::kNpy, bytes);
}

}  // namespace dfl::fuzz
