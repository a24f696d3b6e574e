// The data contract of a run: what the numbers of its data and of its model
// mean. Nodes mix models only where they have the same contract.
//
// Each node derives its own, from the plan, from its data and from its model.
// Nodes compare it field by field, by hashes.
#ifndef DFL_CORE_CONTRACT_DATA_CONTRACT_H_
#define DFL_CORE_CONTRACT_DATA_CONTRACT_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace dfl::core {

enum class Task { kClassification, kRegression };

// "classification", "regression".
absl::string_view TaskName(Task task);

// How a raw value becomes an input of the model:
//   input = (raw / divide - mean) / std
struct InputScaling {
  // What has a mean and a std of its own: nothing (no standardisation), all
  // values together, each channel (the first extent of a row's shape), or each
  // feature.
  enum class Per { kNone, kAll, kChannel, kFeature };
  // Whose rows mean and std are of: the node's own, all nodes' of the network,
  // or nobody's, since they are given.
  enum class Over { kNode, kNetwork, kGiven };

  double divide = 1;  // IsDivisor; 255 for bytes
  Per per = Per::kNone;
  Over over = Over::kNode;
  // 1, channels or features numbers each. Empty with kNone and with kNode,
  // where each node has its own.
  std::vector<float> mean;
  std::vector<float> std;

  friend bool operator==(const InputScaling&, const InputScaling&) = default;
};

// Whether float32 holds `number`, rounded; a larger one, infinity and NaN it
// does not.
inline bool FitsFloat(double number) {
  return std::fabs(number) <= std::numeric_limits<float>::max();
}

// Whether raw values can be divided by `number`, in float32: it is above 0, and
// neither 0 nor infinite when it is rounded.
inline bool IsDivisor(double number) {
  return FitsFloat(number) && number >= std::numeric_limits<float>::min();
}
inline constexpr absl::string_view kDivisors =
    "number > 0, from 1.2e-38 to 3.4e38";

// "none", "all", "channel", "feature"; "node", "network", "given".
absl::string_view PerName(InputScaling::Per per);
absl::string_view OverName(InputScaling::Over over);

struct DataContract {
  Task task = Task::kClassification;
  std::vector<std::string> classes;  // names of class 0, 1, ...; regression: {}
  std::vector<std::string> features;  // names in order; {}: they have none
  std::vector<int64_t> shape;         // of one row
  InputScaling input;
  std::string loss;   // e.g. "cross-entropy"
  std::string model;  // SHA-256 of the model before training, 64 hex digits

  friend bool operator==(const DataContract&, const DataContract&) = default;
};

enum class ContractField {
  kTask,
  kClasses,
  kFeatures,
  kShape,
  kInput,
  kLoss,
  kModel,
};
inline constexpr std::array<ContractField, 7> kContractFields = {
    ContractField::kTask,  ContractField::kClasses, ContractField::kFeatures,
    ContractField::kShape, ContractField::kInput,   ContractField::kLoss,
    ContractField::kModel};

// "task", "classes", "features", "shape", "input", "loss", "model".
absl::string_view FieldName(ContractField field);

// The value of a field, as people read it and as it is hashed: `["cat",
// "dog"]`, `[1, 28, 28]`, `{divide: 255, standardise: none}`. Equal values have
// equal texts.
std::string FieldText(const DataContract& contract, ContractField field);

// Which settings say it, for a person whose nodes disagree about it.
absl::string_view FieldCure(ContractField field);

// The first 8 bytes of the SHA-256 of each field's text, in the order of
// kContractFields. All 0: there is no contract.
using ContractDigest = std::array<uint64_t, kContractFields.size()>;

// Of a field whose text is `text`.
uint64_t FieldDigest(ContractField field, absl::string_view text);

ContractDigest DigestOf(const DataContract& contract);

// The fields in which two contracts differ, in order.
std::vector<ContractField> Differences(const ContractDigest& a,
                                       const ContractDigest& b);

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_DATA_CONTRACT_H_
