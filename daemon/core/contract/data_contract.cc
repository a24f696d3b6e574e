#include "daemon/core/contract/data_contract.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/sha256.h"
#include "daemon/core/contract/shape.h"

namespace dfl::core {
namespace {

std::string NamesText(const std::vector<std::string>& names) {
  return absl::StrCat("[",
                      absl::StrJoin(names, ", ",
                                    [](std::string* out, const std::string& n) {
                                      absl::StrAppend(out, "\"",
                                                      absl::Utf8SafeCEscape(n),
                                                      "\"");
                                    }),
                      "]");
}

// Nine digits tell any two floats apart.
std::string NumbersText(const std::vector<float>& numbers) {
  return absl::StrCat("[",
                      absl::StrJoin(numbers, ", ",
                                    [](std::string* out, float number) {
                                      absl::StrAppendFormat(out, "%.9g",
                                                            number);
                                    }),
                      "]");
}

std::string InputText(const InputScaling& input) {
  std::string text = absl::StrFormat("{divide: %.17g, standardise: %s",
                                     input.divide, PerName(input.per));
  if (input.per != InputScaling::Per::kNone) {
    absl::StrAppend(&text, ", over: ", OverName(input.over));
  }
  if (!input.mean.empty()) {
    absl::StrAppend(&text, ", mean: ", NumbersText(input.mean),
                    ", std: ", NumbersText(input.std));
  }
  return absl::StrCat(text, "}");
}

}  // namespace

absl::string_view TaskName(Task task) {
  return task == Task::kRegression ? "regression" : "classification";
}

absl::string_view PerName(InputScaling::Per per) {
  switch (per) {
    case InputScaling::Per::kNone:
      return "none";
    case InputScaling::Per::kAll:
      return "all";
    case InputScaling::Per::kChannel:
      return "channel";
    case InputScaling::Per::kFeature:
      return "feature";
  }
  return "";
}

absl::string_view OverName(InputScaling::Over over) {
  switch (over) {
    case InputScaling::Over::kNode:
      return "node";
    case InputScaling::Over::kNetwork:
      return "network";
    case InputScaling::Over::kGiven:
      return "given";
  }
  return "";
}

absl::string_view FieldName(ContractField field) {
  switch (field) {
    case ContractField::kTask:
      return "task";
    case ContractField::kClasses:
      return "classes";
    case ContractField::kFeatures:
      return "features";
    case ContractField::kShape:
      return "shape";
    case ContractField::kInput:
      return "input";
    case ContractField::kLoss:
      return "loss";
    case ContractField::kModel:
      return "model";
  }
  return "";
}

std::string FieldText(const DataContract& contract, ContractField field) {
  switch (field) {
    case ContractField::kTask:
      return std::string(TaskName(contract.task));
    case ContractField::kClasses:
      return NamesText(contract.classes);
    case ContractField::kFeatures:
      return NamesText(contract.features);
    case ContractField::kShape:
      return ShapeText(contract.shape);
    case ContractField::kInput:
      return InputText(contract.input);
    case ContractField::kLoss:
      return contract.loss;
    case ContractField::kModel:
      return contract.model;
  }
  return "";
}

absl::string_view FieldCure(ContractField field) {
  switch (field) {
    case ContractField::kTask:
      return "data.task of the nodes' settings, or data.task of the plan";
    case ContractField::kClasses:
      return "data.classes of the plan, or data.label_values of the nodes' "
             "settings";
    case ContractField::kFeatures:
      return "data.features of the plan, or data.drop_columns of the nodes' "
             "settings";
    case ContractField::kShape:
      return "data.shape of the plan, or data.features and data.shape of the "
             "nodes' settings";
    case ContractField::kInput:
      return "data.divide and data.standardise of the nodes' settings, or "
             "of the plan";
    case ContractField::kLoss:
      return "model.loss of the plan";
    case ContractField::kModel:
      return "model of the plan; with torchscript also the file at model.path, "
             "which must hold the same on every node";
  }
  return "";
}

uint64_t FieldDigest(ContractField field, absl::string_view text) {
  const std::string hex = Sha256Hex(absl::StrCat(FieldName(field), "\n", text));
  uint64_t digest = 0;
  for (const char c : hex.substr(0, 16)) {
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    digest = digest * 16 + static_cast<uint64_t>(digit);
  }
  return digest;
}

ContractDigest DigestOf(const DataContract& contract) {
  ContractDigest digest{};
  for (size_t i = 0; i < kContractFields.size(); ++i) {
    digest[i] = FieldDigest(kContractFields[i],
                            FieldText(contract, kContractFields[i]));
  }
  return digest;
}

std::vector<ContractField> Differences(const ContractDigest& a,
                                       const ContractDigest& b) {
  std::vector<ContractField> fields;
  for (size_t i = 0; i < kContractFields.size(); ++i) {
    if (a[i] != b[i]) fields.push_back(kContractFields[i]);
  }
  return fields;
}

}  // namespace dfl::core
