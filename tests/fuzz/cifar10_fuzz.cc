// A data file in CIFAR-10's binary format, plain or gzip.
#include "tests/fuzz/data_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {

DFL_FUZZ_TARGET(cifar10)(absl::string_view bytes) {
  CheckOneFile(data::Format::kCifar10, bytes);
}

}  // namespace dfl::fuzz
