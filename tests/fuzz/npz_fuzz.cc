// A data file of NumPy's: an archive with the arrays X and y.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(npz)(absl::string_view bytes) {
  CheckOneFile(data::Format::kNpz, bytes);
}

}  // namespace dfl::fuzz
