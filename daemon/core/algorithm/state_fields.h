// The fields of an algorithm's state (algorithm_state.h), each named once for
// both directions: a class's VisitState hands every field to StateFields, which
// writes it into a state or sets it from one.
//
//   void Sgp::VisitState(StateFields& fields) {
//     MassRounds::VisitState(fields);
//     fields.Vector("x", x_, n());
//     fields.Number("omega", omega_);
//   }
//
// A state is read twice. The first time (kCheck) nothing is set: a field that
// is missing, of another type, too long or not finite is noted, and so is one
// that nobody asked for. Only then it is read (kRead), so a refused state
// changes nothing. What VisitState asks for must therefore not depend on what
// it reads.
//
// Names are the papers' symbols where there are any. Numbers that count are at
// most 2^53, so that adding to them is safe.
#ifndef DFL_CORE_ALGORITHM_STATE_FIELDS_H_
#define DFL_CORE_ALGORITHM_STATE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_state.h"

namespace dfl::core {

class StateFields {
 public:
  // Writes into `state`, which is borrowed.
  explicit StateFields(AlgorithmState* state);
  // Checks, or reads, `state`, which is borrowed. kRead: it was checked.
  enum class Reading { kCheck, kRead };
  StateFields(const AlgorithmState& state, Reading reading);

  // A count in [least, most].
  static constexpr int64_t kLargestCount = int64_t{1} << 53;
  void Count(absl::string_view name, int64_t& value, int64_t least = 0,
             int64_t most = kLargestCount);
  // Any number of 64 bits: of a parcel, say, which its giver made up.
  void Name(absl::string_view name, uint64_t& value);
  void Flag(absl::string_view name, bool& value);
  // Finite.
  void Number(absl::string_view name, double& value);
  void Number(absl::string_view name, float& value);
  // Finite.
  void Numbers(absl::string_view name, std::vector<double>& values);
  // Above 0.
  void Positive(absl::string_view name, double& value);
  // [length].
  void Bytes(absl::string_view name, std::vector<uint8_t>& bytes,
             size_t length);
  // A node's name; "": none.
  void Node(absl::string_view name, NodeId& node);
  // Different nodes. A vector's order is kept.
  void Nodes(absl::string_view name, std::set<NodeId>& nodes);
  void Nodes(absl::string_view name, std::vector<NodeId>& nodes);
  // [length], finite.
  void Vector(absl::string_view name, FlatVector& vector, size_t length);
  // The same, or nothing: then `vector` is left as it is.
  void Vector(absl::string_view name, bool& present, FlatVector& vector,
              size_t length);
  // The same, or null.
  void Vector(absl::string_view name, std::shared_ptr<const FlatVector>& vector,
              size_t length);
  // A whole model that waits, of n parameters and b buffers, as its values:
  // what fp32 is of it exactly, of another format what AddValues makes of it.
  // Nothing when it carries only a part of its coordinates.
  void Model(absl::string_view name, std::optional<RemoteModel>& model,
             size_t n, size_t b);

  // Fields of each node: `visit`(T&) names one's.
  template <typename T, typename Visit>
  void ByNode(absl::string_view name, std::map<NodeId, T>& map, Visit visit);
  // Fields of each entry, of at most `most`, in order.
  template <typename T, typename Visit>
  void List(absl::string_view name, std::vector<T>& list, size_t most,
            Visit visit);

  // What keeps the state from being read; kCheck: a field that was not asked
  // for too. INVALID_ARGUMENT: the field, what was found, what is allowed.
  absl::Status Finish() const;

 private:
  bool writing() const { return to_ != nullptr; }
  std::string PathOf(absl::string_view name) const {
    return absl::StrCat(prefix_, name);
  }
  void Write(absl::string_view name, StateValue value);
  // The field as a T; null: there is none, which is noted. `allowed` says what
  // it should be.
  template <typename T>
  const T* Find(absl::string_view name, absl::string_view allowed);
  // Sets `to`, when it is time to.
  template <typename T, typename V>
  void Set(T& to, V&& value) {
    if (reading_ == Reading::kRead) to = std::forward<V>(value);
  }
  void Refuse(absl::string_view name, absl::string_view found,
              absl::string_view allowed);
  // Null: none, or not finite.
  const double* FindNumber(absl::string_view name);
  // In [0, most]; 0: none.
  int64_t FindLength(absl::string_view name, int64_t most);
  // The vector, when it is of `length` (or empty, when it `may_lack`) and
  // finite.
  const FlatVector* FindVector(absl::string_view name, size_t length,
                               bool may_lack);
  // Names that may be a node's, without doubles.
  const std::vector<std::string>* FindNodes(absl::string_view name);

  AlgorithmState* to_ = nullptr;
  const AlgorithmState* from_ = nullptr;
  Reading reading_ = Reading::kCheck;
  std::string prefix_;
  std::set<std::string> asked_;
  absl::Status status_;
};

template <typename T, typename Visit>
void StateFields::ByNode(absl::string_view name, std::map<NodeId, T>& map,
                         Visit visit) {
  std::set<NodeId> nodes;
  if (writing()) {
    for (const auto& [node, entry] : map) nodes.insert(node);
    Nodes(name, nodes);
  } else if (const auto* names = FindNodes(name)) {
    for (const std::string& node : *names) nodes.emplace(node);
  }
  std::map<NodeId, T> read;
  const std::string before = prefix_;
  for (const NodeId& node : nodes) {
    prefix_ = absl::StrCat(before, name, "/", node.name(), "/");
    visit(writing() ? map[node] : read[node]);
  }
  prefix_ = before;
  if (!writing()) Set(map, std::move(read));
}

template <typename T, typename Visit>
void StateFields::List(absl::string_view name, std::vector<T>& list,
                       size_t most, Visit visit) {
  auto length = static_cast<int64_t>(list.size());
  if (writing()) {
    Count(name, length);
  } else {
    length = FindLength(name, static_cast<int64_t>(most));
  }
  std::vector<T> read(writing() ? 0 : length);
  const std::string before = prefix_;
  for (int64_t i = 0; i < length; ++i) {
    prefix_ = absl::StrCat(before, name, "/", i, "/");
    visit(writing() ? list[i] : read[i]);
  }
  prefix_ = before;
  if (!writing()) Set(list, std::move(read));
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_STATE_FIELDS_H_
