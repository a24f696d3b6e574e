#include "daemon/app/models/contract_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "daemon/base/one_line.h"
#include "daemon/base/utf8.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

using core::ContractField;
using core::DataContract;
using core::InputScaling;
using nlohmann::json;
using nlohmann::ordered_json;

// Of errors: a list of ten thousand names is no line.
constexpr size_t kShownText = 300;

// A float as the shortest decimal number that stands for it; JSON would write
// the seventeen digits of the double.
json Numbers(const std::vector<float>& values) {
  json list = json::array();
  for (const float value : values) {
    list.push_back(json::parse(absl::StrCat(value), nullptr, false));
    if (!list.back().is_number() || list.back().get<float>() != value) {
      list.back() = value;
    }
  }
  return list;
}

template <typename T>
void Take(const json& from, const char* key, T& to) {
  const auto found = from.find(key);
  if (found != from.end() && !found->is_null()) to = found->get<T>();
}

// JSON has numbers that an int64 or a float cannot hold.
void TakeShape(const json& from, std::vector<int64_t>& to) {
  const auto found = from.find("shape");
  if (found == from.end() || found->is_null()) return;
  for (const json& length : *found) {
    // Beyond int64 it would wrap to a negative one.
    if (!length.is_number_integer() || length.get<int64_t>() < 0) {
      throw std::invalid_argument("shape has a length that is none");
    }
  }
  to = found->get<std::vector<int64_t>>();
}

void TakeNumbers(const json& from, const char* key, std::vector<float>& to) {
  std::vector<double> numbers;
  Take(from, key, numbers);
  for (const double number : numbers) {
    if (!core::FitsFloat(number)) {
      throw std::invalid_argument(
          absl::StrCat(key, " has a number that float32 does not hold"));
    }
    to.push_back(static_cast<float>(number));
  }
}

void TakeDivide(const json& from, double& to) {
  Take(from, "divide", to);
  if (!core::IsDivisor(to)) {
    throw std::invalid_argument(
        absl::StrCat("divide is ", to, ", and not a ", core::kDivisors));
  }
}

// Whether brackets outside of texts are nested at most `levels` deep. A parser
// takes a hundred times the bytes of `text` where they are deep.
bool IsFlat(absl::string_view text, int levels) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (in_text) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > levels) return false;
  }
  return true;
}

InputScaling::Per PerOf(const std::string& name) {
  for (const auto per : {InputScaling::Per::kAll, InputScaling::Per::kChannel,
                         InputScaling::Per::kFeature}) {
    if (name == core::PerName(per)) return per;
  }
  return InputScaling::Per::kNone;
}

InputScaling::Over OverOf(const std::string& name) {
  for (const auto over :
       {InputScaling::Over::kNetwork, InputScaling::Over::kGiven}) {
    if (name == core::OverName(over)) return over;
  }
  return InputScaling::Over::kNode;
}

std::string Short(absl::string_view text) {
  return absl::StrCat(StartOf(text, kShownText),
                      text.size() > kShownText ? "..." : "");
}

// Numbers that each node has of its own are no part of the contract.
DataContract WithoutOwnNumbers(DataContract contract) {
  if (contract.input.over == InputScaling::Over::kNode) {
    contract.input.mean.clear();
    contract.input.std.clear();
  }
  return contract;
}

bool IsOfOutputs(ContractField field) {
  return field == ContractField::kTask || field == ContractField::kClasses ||
         field == ContractField::kLoss;
}

// Nothing is said of what was never stated.
bool IsOpen(const DataContract& contract, ContractField field) {
  switch (field) {
    case ContractField::kClasses:
      return contract.classes.empty();
    case ContractField::kFeatures:
      return contract.features.empty();
    case ContractField::kShape:
      return contract.shape.empty();
    case ContractField::kLoss:
      return contract.loss.empty();
    default:
      return false;
  }
}

// Whether the two scale raw values alike, but for means and stds that were
// taken from other rows of the same kind.
bool ScaleAlike(const core::InputScaling& a, const core::InputScaling& b) {
  constexpr float kPart = 0.05F;  // of a std
  if (a.divide != b.divide || a.per != b.per ||
      a.mean.size() != b.mean.size() || a.std.size() != b.std.size()) {
    return false;
  }
  for (size_t i = 0; i < a.mean.size(); ++i) {
    const float std = std::max(a.std[i], b.std[i]);
    if (!(std::fabs(a.mean[i] - b.mean[i]) <= kPart * std) ||
        !(std::fabs(a.std[i] - b.std[i]) <= kPart * std)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string ContractJson(const DataContract& contract) {
  ordered_json input = {
      {"divide", contract.input.divide},
      {"per", std::string(core::PerName(contract.input.per))},
      {"over", std::string(core::OverName(contract.input.over))}};
  if (!contract.input.mean.empty()) {
    input["mean"] = Numbers(contract.input.mean);
    input["std"] = Numbers(contract.input.std);
  }
  const ordered_json document = {
      {"task", std::string(core::TaskName(contract.task))},
      {"classes", contract.classes},
      {"features", contract.features},
      {"shape", contract.shape},
      {"input", input},
      {"loss", contract.loss},
      {"model", contract.model}};
  // A name in a data file may be no UTF-8.
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

absl::StatusOr<DataContract> ParseContractJson(absl::string_view text) {
  DataContract contract;
  try {
    constexpr int kLevels = 3;  // document, input, mean
    if (!IsFlat(text, kLevels)) {
      throw std::invalid_argument("it is nested too deeply");
    }
    const json document = json::parse(text.begin(), text.end());
    if (!document.is_object()) throw std::invalid_argument("it is no object");
    std::string task;
    std::string per;
    std::string over;
    json input = json::object();
    Take(document, "task", task);
    Take(document, "classes", contract.classes);
    Take(document, "features", contract.features);
    TakeShape(document, contract.shape);
    Take(document, "input", input);
    Take(document, "loss", contract.loss);
    Take(document, "model", contract.model);
    if (!input.is_object()) throw std::invalid_argument("input is no object");
    TakeDivide(input, contract.input.divide);
    Take(input, "per", per);
    Take(input, "over", over);
    TakeNumbers(input, "mean", contract.input.mean);
    TakeNumbers(input, "std", contract.input.std);
    contract.task = task == core::TaskName(core::Task::kRegression)
                        ? core::Task::kRegression
                        : core::Task::kClassification;
    contract.input.per = PerOf(per);
    contract.input.over = OverOf(over);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file's data contract cannot be read: ",
                     OneLine(Short(error.what())),
                     "; write the file again, or leave its metadata out"));
  }
  return contract;
}

absl::StatusOr<std::vector<std::string>> CheckFileContract(
    const DataContract& file, const DataContract& node,
    const ContractUse& use) {
  std::vector<std::string> notes;
  const DataContract theirs = WithoutOwnNumbers(file);
  const DataContract ours = WithoutOwnNumbers(node);
  for (const ContractField field : core::kContractFields) {
    if (field == ContractField::kModel) continue;
    const std::string a = core::FieldText(theirs, field);
    const std::string b = core::FieldText(ours, field);
    if (a == b || IsOpen(theirs, field) || IsOpen(ours, field)) continue;
    const std::string both =
        absl::StrCat("the file's model has ", core::FieldName(field), " ",
                     Short(a), ", and this node ", Short(b));
    const bool name =
        field == ContractField::kClasses || field == ContractField::kFeatures;
    const bool input = field == ContractField::kInput;
    const bool of_inputs = input || field == ContractField::kShape;
    const bool passes = (use.part && (IsOfOutputs(field) || of_inputs)) ||
                        (use.forced && (name || input)) ||
                        (input && ScaleAlike(theirs.input, ours.input)) ||
                        field == ContractField::kLoss;
    if (passes) {
      notes.push_back(both);
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        both, "; its numbers would mean something else here. They come from ",
        core::FieldCure(field),
        name || input ? ". --force takes the file all the same, if you know "
                        "that it fits"
                      : ""));
  }
  return notes;
}

}  // namespace dfl::app
