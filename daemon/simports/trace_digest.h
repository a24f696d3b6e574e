// A running hash of what happened in a simulated run. Two runs of one scenario
// with one seed give the same digest; a test that runs its scenario twice
// compares nothing else.
#ifndef DFL_SIMPORTS_TRACE_DIGEST_H_
#define DFL_SIMPORTS_TRACE_DIGEST_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "daemon/base/rng.h"

namespace dfl::simports {

class TraceDigest {
 public:
  void Add(uint64_t word) {
    state_ = Mix64(state_ ^ word) + 0x9E3779B97F4A7C15ULL;
    ++words_;
  }
  void Add(absl::string_view text) { Add(DeriveSeed(text.size(), text)); }

  // Depends on every word added and on their order.
  uint64_t value() const { return Mix64(state_ ^ words_); }

 private:
  uint64_t state_ = 0;
  uint64_t words_ = 0;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_TRACE_DIGEST_H_
