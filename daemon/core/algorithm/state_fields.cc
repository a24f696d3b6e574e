#include "daemon/core/algorithm/state_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

constexpr const char* kTypes[] = {
    "an integer", "a number",          "a text",
    "a vector",   "a list of numbers", "a list of texts"};

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

std::vector<std::string> NamesOf(const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const NodeId& node : nodes) names.push_back(node.name());
  return names;
}

}  // namespace

StateFields::StateFields(AlgorithmState* state) : to_(state) {}

StateFields::StateFields(const AlgorithmState& state, Reading reading)
    : from_(&state), reading_(reading) {}

// ----------------------------------------------------------------- fields ----

void StateFields::Count(absl::string_view name, int64_t& value, int64_t least,
                        int64_t most) {
  if (writing()) return Write(name, value);
  const auto* found = Find<int64_t>(name, kTypes[0]);
  if (found == nullptr) return;
  if (*found < least || *found > most) {
    return Refuse(name, absl::StrCat(*found),
                  absl::StrCat(least, " to ", most));
  }
  Set(value, *found);
}

void StateFields::Name(absl::string_view name, uint64_t& value) {
  if (writing()) return Write(name, static_cast<int64_t>(value));
  const auto* found = Find<int64_t>(name, kTypes[0]);
  if (found != nullptr) Set(value, static_cast<uint64_t>(*found));
}

void StateFields::Flag(absl::string_view name, bool& value) {
  if (writing()) return Write(name, int64_t{value ? 1 : 0});
  const auto* found = Find<int64_t>(name, kTypes[0]);
  if (found == nullptr) return;
  if (*found != 0 && *found != 1) {
    return Refuse(name, absl::StrCat(*found), "0 or 1");
  }
  Set(value, *found == 1);
}

void StateFields::Number(absl::string_view name, double& value) {
  if (writing()) return Write(name, value);
  if (const double* found = FindNumber(name)) Set(value, *found);
}

void StateFields::Number(absl::string_view name, float& value) {
  if (writing()) return Write(name, static_cast<double>(value));
  const double* found = FindNumber(name);
  if (found == nullptr) return;
  if (std::fabs(*found) > std::numeric_limits<float>::max()) {
    return Refuse(name, absl::StrCat(*found), "a number of 32 bits");
  }
  Set(value, static_cast<float>(*found));
}

void StateFields::Positive(absl::string_view name, double& value) {
  if (writing()) return Write(name, value);
  const double* found = FindNumber(name);
  if (found == nullptr) return;
  if (*found <= 0) {
    return Refuse(name, absl::StrCat(*found), "a number above 0");
  }
  Set(value, *found);
}

void StateFields::Numbers(absl::string_view name, std::vector<double>& values) {
  if (writing()) return Write(name, values);
  const auto* found = Find<std::vector<double>>(name, kTypes[4]);
  if (found == nullptr) return;
  for (const double number : *found) {
    if (!std::isfinite(number)) {
      return Refuse(name, absl::StrCat(number), "finite numbers");
    }
  }
  Set(values, *found);
}

void StateFields::Bytes(absl::string_view name, std::vector<uint8_t>& bytes,
                        size_t length) {
  if (writing()) return Write(name, std::string(bytes.begin(), bytes.end()));
  const std::string allowed = absl::StrCat("bytes, ", length, " of them");
  const auto* found = Find<std::string>(name, allowed);
  if (found == nullptr) return;
  if (found->size() != length) {
    return Refuse(name, absl::StrCat(found->size(), " bytes"), allowed);
  }
  Set(bytes, std::vector<uint8_t>(found->begin(), found->end()));
}

void StateFields::Node(absl::string_view name, NodeId& node) {
  if (writing()) return Write(name, node.name());
  const auto* found = Find<std::string>(name, kTypes[2]);
  if (found == nullptr) return;
  if (!found->empty() && !ValidateNodeName(*found).ok()) {
    return Refuse(name, Quoted(*found), "the name of a node, or none");
  }
  Set(node, NodeId(*found));
}

void StateFields::Nodes(absl::string_view name, std::set<NodeId>& nodes) {
  std::vector<NodeId> list(nodes.begin(), nodes.end());
  Nodes(name, list);
  if (!writing()) Set(nodes, std::set<NodeId>(list.begin(), list.end()));
}

void StateFields::Nodes(absl::string_view name, std::vector<NodeId>& nodes) {
  if (writing()) return Write(name, NamesOf(nodes));
  const auto* found = FindNodes(name);
  if (found == nullptr) return;
  std::vector<NodeId> read;
  for (const std::string& node : *found) read.emplace_back(node);
  Set(nodes, std::move(read));
}

void StateFields::Vector(absl::string_view name, FlatVector& vector,
                         size_t length) {
  if (writing()) return Write(name, vector);
  const FlatVector* found = FindVector(name, length, /*may_lack=*/false);
  if (found != nullptr) Set(vector, *found);
}

void StateFields::Vector(absl::string_view name, bool& present,
                         FlatVector& vector, size_t length) {
  if (writing()) return Write(name, present ? vector : FlatVector());
  const FlatVector* found = FindVector(name, length, /*may_lack=*/true);
  if (found == nullptr) return;
  Set(present, !found->empty());
  if (!found->empty()) Set(vector, *found);
}

void StateFields::Vector(absl::string_view name,
                         std::shared_ptr<const FlatVector>& vector,
                         size_t length) {
  if (writing()) return Write(name, vector ? *vector : FlatVector());
  const FlatVector* found = FindVector(name, length, /*may_lack=*/true);
  if (found == nullptr || reading_ == Reading::kCheck) return;
  vector =
      found->empty() ? nullptr : std::make_shared<const FlatVector>(*found);
}

void StateFields::Model(absl::string_view name,
                        std::optional<RemoteModel>& model, size_t n, size_t b) {
  const auto length = static_cast<int64_t>(n);
  if (writing()) {
    FlatVector values;
    if (model && model->parameters->carried() == length) {
      values.resize(n);
      AddValues(*model->parameters, 1, absl::MakeSpan(values));
      values.insert(values.end(), model->buffers.begin(), model->buffers.end());
    }
    return Write(name, std::move(values));
  }
  const FlatVector* found = FindVector(name, n + b, /*may_lack=*/true);
  if (found == nullptr || reading_ == Reading::kCheck) return;
  model.reset();
  if (found->empty()) return;
  const auto middle = found->begin() + length;
  model.emplace();
  model->parameters = std::make_unique<PlainRemoteVector>(
      std::vector<float>(found->begin(), middle));
  model->buffers.assign(middle, found->end());
}

absl::Status StateFields::Finish() const {
  if (!status_.ok() || from_ == nullptr || reading_ == Reading::kRead) {
    return status_;
  }
  for (const auto& [path, value] : from_->fields) {
    if (asked_.count(path) > 0) continue;
    return UnknownNameError(
        absl::StrCat("state of ", from_->algorithm, ": field"), path,
        std::vector<std::string>(asked_.begin(), asked_.end()));
  }
  return absl::OkStatus();
}

// ---------------------------------------------------------------- reading ----

void StateFields::Write(absl::string_view name, StateValue value) {
  to_->fields[PathOf(name)] = std::move(value);
}

void StateFields::Refuse(absl::string_view name, absl::string_view found,
                         absl::string_view allowed) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("state of ", from_->algorithm, ": field \"", PathOf(name),
                   "\": ", found, "; allowed: ", allowed));
}

template <typename T>
const T* StateFields::Find(absl::string_view name, absl::string_view allowed) {
  const auto it = from_->fields.find(PathOf(name));
  if (it == from_->fields.end()) {
    Refuse(name, "it is missing", allowed);
    return nullptr;
  }
  asked_.insert(it->first);
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) Refuse(name, kTypes[it->second.index()], allowed);
  return value;
}

const double* StateFields::FindNumber(absl::string_view name) {
  const auto* found = Find<double>(name, kTypes[1]);
  if (found == nullptr || std::isfinite(*found)) return found;
  Refuse(name, absl::StrCat(*found), "a finite number");
  return nullptr;
}

int64_t StateFields::FindLength(absl::string_view name, int64_t most) {
  const auto* found = Find<int64_t>(name, kTypes[0]);
  if (found == nullptr) return 0;
  if (*found >= 0 && *found <= most) return *found;
  Refuse(name, absl::StrCat(*found), absl::StrCat("0 to ", most, " entries"));
  return 0;
}

const FlatVector* StateFields::FindVector(absl::string_view name, size_t length,
                                          bool may_lack) {
  const std::string allowed =
      absl::StrCat("a vector of length ", length, may_lack ? ", or none" : "");
  const auto* found = Find<FlatVector>(name, allowed);
  if (found == nullptr) return nullptr;
  if (found->size() != length && !(may_lack && found->empty())) {
    Refuse(name, absl::StrCat("length ", found->size()), allowed);
    return nullptr;
  }
  const auto odd = std::find_if(found->begin(), found->end(), [](float value) {
    return !std::isfinite(value);
  });
  if (odd == found->end()) return found;
  Refuse(name, absl::StrCat(*odd, " at ", odd - found->begin()),
         "finite numbers");
  return nullptr;
}

const std::vector<std::string>* StateFields::FindNodes(absl::string_view name) {
  const auto* found = Find<std::vector<std::string>>(name, kTypes[5]);
  if (found == nullptr) return nullptr;
  std::set<absl::string_view> different;
  for (const std::string& node : *found) {
    if (ValidateNodeName(node).ok() && different.insert(node).second) continue;
    Refuse(name, Quoted(node), "different names of nodes");
    return nullptr;
  }
  return found;
}

}  // namespace dfl::core
