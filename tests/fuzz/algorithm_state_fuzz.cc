// The state of an algorithm as bytes, and what an algorithm takes of it. The
// input is tried as it is, and once more with right magic, version, length and
// checksum.
#include <string>

#include "daemon/base/check.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/live_algorithm.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

void CheckState(absl::string_view bytes) {
  const auto state = core::ParseState(bytes);
  if (!state.ok()) return;
  DFL_CHECK(core::SerializeState(*state) == bytes);
  CheckImport(*state);
}

}  // namespace

DFL_FUZZ_TARGET(algorithm_state)(absl::string_view bytes) {
  CheckState(bytes);
  std::string sealed(bytes);
  SealState(&sealed);
  CheckState(sealed);
}

}  // namespace dfl::fuzz
