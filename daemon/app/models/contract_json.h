// The data contract as it stands in model files, and whether a file's contract
// is that of the node.
//
//   {"task": "classification", "classes": ["cat", "dog"], "features": [],
//    "shape": [1, 28, 28],
//    "input": {"divide": 255, "per": "all", "over": "given", "mean": [0.13],
//              "std": [0.31]},
//    "loss": "cross-entropy", "model": "9f86..."}
//
// An input of the model is (raw / divide - mean) / std, and output i is class
// i. `per` says what has a mean and a std of its own.
#ifndef DFL_APP_MODELS_CONTRACT_JSON_H_
#define DFL_APP_MODELS_CONTRACT_JSON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/core/contract/data_contract.h"

namespace dfl::app {

// One line.
std::string ContractJson(const core::DataContract& contract);

// Fields that are not there keep their defaults, and unknown ones are passed
// over: the file may be of another version.
// Errors: INVALID_ARGUMENT names the field that is of another kind.
absl::StatusOr<core::DataContract> ParseContractJson(absl::string_view text);

// What of a file is taken.
struct ContractUse {
  bool part = false;    // a backbone: inputs and outputs may be others
  bool forced = false;  // somebody has said that names and scaling may differ
};

// Compares the contract of a file with the node's, field by field. The model
// itself is compared by its tensors. Returns what people should know.
// Errors: FAILED_PRECONDITION names the field, both sides, and what helps.
absl::StatusOr<std::vector<std::string>> CheckFileContract(
    const core::DataContract& file, const core::DataContract& node,
    const ContractUse& use);

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_CONTRACT_JSON_H_
