// A fuzz target: a function of any bytes that calls a decoder of outside bytes
// and aborts, by DFL_CHECK, where the decoder breaks its promise.
//
//   DFL_FUZZ_TARGET(frames)(absl::string_view bytes) {
//     ...
//   }
//
// stands once in frames_fuzz.cc. With -DDFL_FUZZ=ON each of these files is a
// program of its own, which libFuzzer drives. Otherwise all of them are in
// fuzz_replay (replay_main.cc), which runs them over their corpora.
#ifndef DFL_TESTS_FUZZ_FUZZ_TARGET_H_
#define DFL_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace dfl::fuzz {

using Target = void (*)(absl::string_view bytes);
using TargetMap = std::map<std::string, Target>;

// Those that were registered, by name. Only in fuzz_replay.
TargetMap& Targets();

inline bool Register(const char* name, Target target) {
  return Targets().emplace(name, target).second;
}

inline absl::string_view BytesOf(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace dfl::fuzz

#ifdef DFL_FUZZ
#define DFL_FUZZ_ENTRY(name)                                                \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) { \
    FuzzTarget(BytesOf(data, size));                                        \
    return 0;                                                               \
  }
#else
#define DFL_FUZZ_ENTRY(name) \
  [[maybe_unused]] static const bool kRegistered = Register(#name, FuzzTarget);
#endif

// In namespace dfl::fuzz.
#define DFL_FUZZ_TARGET(name)                      \
  static void FuzzTarget(absl::string_view bytes); \
  DFL_FUZZ_ENTRY(name)                             \
  static void FuzzTarget

#endif  // DFL_TESTS_FUZZ_FUZZ_TARGET_H_
