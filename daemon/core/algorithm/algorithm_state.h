// The state of an algorithm as one value: all that its next step depends on and
// that is its own, by name. Exported and imported by Algorithm (algorithm.h);
// each class names its fields once, in VisitState (state_fields.h).
//
// As bytes, little-endian, the same for equal states:
//
//   "DFLA"  u32 version  u64 length of the whole  algorithm
//   u32 number of fields, and for each, in the order of names:
//     name  u8 type (the place in StateValue)  value
//   u32 CRC-32C of all before
//
// A text is a u32 length and its characters; a list is a u32 length and its
// entries, a vector a u64 length and its fp32 entries.
#ifndef DFL_CORE_ALGORITHM_ALGORITHM_STATE_H_
#define DFL_CORE_ALGORITHM_ALGORITHM_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/aligned_vector.h"

namespace dfl::core {

// Order and meaning are those of the bytes: new types go to the end.
using StateValue = std::variant<int64_t, double, std::string, FlatVector,
                                std::vector<double>, std::vector<std::string>>;

// The version of the fields' meaning and of the bytes. It is raised when an old
// state would be misunderstood.
inline constexpr uint32_t kAlgorithmStateVersion = 1;

struct AlgorithmState {
  uint32_t version = kAlgorithmStateVersion;
  std::string algorithm;  // its name in the catalogue
  // What belongs to one neighbour or is one of several has a path, as in
  // "given/node-2/out/mass".
  std::map<std::string, StateValue> fields;

  friend bool operator==(const AlgorithmState& a, const AlgorithmState& b) {
    return a.version == b.version && a.algorithm == b.algorithm &&
           a.fields == b.fields;
  }
};

// Texts and lists have fewer than 2^32 entries.
std::string SerializeState(const AlgorithmState& state);

// The same bytes, piece by piece and without a copy of the vectors; and how
// many they are.
using StateSink = std::function<void(absl::string_view)>;
void SerializeState(const AlgorithmState& state, const StateSink& sink);
uint64_t SerializedLength(const AlgorithmState& state);

// Reads a state from `bytes`, which need not be trusted: no more is allocated
// than they hold, and a torn or changed state is an error.
// Errors:
//   DATA_LOSS         torn, changed or no such state; the text says where.
//   INVALID_ARGUMENT  another version; the text names it and the allowed one.
absl::StatusOr<AlgorithmState> ParseState(absl::string_view bytes);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_ALGORITHM_STATE_H_
