// A data file in LIBSVM's format, plain or gzip.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(libsvm)(absl::string_view bytes) {
  CheckOneFile(data::Format::kLibsvm, bytes);
}

}  // namespace dfl::fuzz
