#include "daemon/core/plan/check_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/labels.h"

namespace dfl::core {
namespace {

constexpr size_t kMostClasses = 65536;
constexpr size_t kHashDigits = 64;

absl::Status Wrong(absl::string_view key, absl::string_view found,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("data.", key, ": ", found, "; allowed: ", allowed));
}

absl::Status CheckNames(absl::string_view key,
                        const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) {
      return Wrong(key, "an empty name found", "a text for each");
    }
    if (!seen.insert(key == "classes" ? CanonicalLabel(name) : name).second) {
      return Wrong(key, absl::StrCat("\"", name, "\" found a second time"),
                   key == "classes" ? "each once (1, 1.0 and +1 are one class)"
                                    : "each once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckClasses(const DataSection& data, const ModelSpec& model) {
  const bool regression = model.classes == 0 || data.task == Task::kRegression;
  if (data.task == Task::kClassification && model.classes == 0) {
    return Wrong("task", "classification, and model.classes is 0",
                 "regression, or model.classes of at least 2");
  }
  if (data.task == Task::kRegression && model.classes > 0) {
    return Wrong(
        "task",
        absl::StrCat("regression, and model.classes is ", model.classes),
        "classification, or model.classes: 0");
  }
  if (!data.classes.has_value()) return absl::OkStatus();
  const size_t found = data.classes->size();
  if (regression) {
    if (found == 0) return absl::OkStatus();
    return Wrong("classes", absl::StrCat(found, " given for a regression"),
                 "none");
  }
  if (found < 2 || found > kMostClasses) {
    return Wrong("classes", absl::StrCat(found, " found"),
                 absl::StrCat("the names of 2 to ", kMostClasses));
  }
  if (model.classes > 0 && static_cast<size_t>(model.classes) != found) {
    return Wrong(
        "classes",
        absl::StrCat(found, " found, and model.classes is ", model.classes),
        "as many, or leave model.classes out");
  }
  return CheckNames("classes", *data.classes);
}

absl::Status CheckShape(const DataSection& data) {
  int64_t size = 1;
  if (data.shape.has_value()) {
    for (const int64_t extent : *data.shape) {
      if (extent < 1 || extent > (int64_t{1} << 40) / size) size = 0;
      if (size == 0) break;
      size *= extent;
    }
    if (size == 0 || data.shape->empty()) {
      return Wrong("shape",
                   absl::StrCat("[", absl::StrJoin(*data.shape, ", "), "]"),
                   "the shape of one row, each extent at least 1");
    }
  }
  if (!data.features.has_value()) return absl::OkStatus();
  DFL_RETURN_IF_ERROR(CheckNames("features", *data.features));
  const auto names = static_cast<int64_t>(data.features->size());
  if (data.shape.has_value() && names > 0 && names != size) {
    return Wrong("features",
                 absl::StrCat(names, " names, and a row of data.shape has ",
                              size, " values"),
                 "a name for each, or [] for none");
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(const DataSection& data) {
  if (data.mean.size() != data.std.size()) {
    return Wrong(
        "standardise",
        absl::StrCat(data.mean.size(), " means and ", data.std.size(), " stds"),
        "as many of each");
  }
  for (size_t i = 0; i < data.mean.size(); ++i) {
    if (std::isfinite(data.mean[i]) && std::isfinite(data.std[i]) &&
        data.std[i] > 0) {
      continue;
    }
    return Wrong("standardise",
                 absl::StrCat("entry ", i, " has mean ", data.mean[i],
                              " and std ", data.std[i]),
                 "finite numbers, std above 0");
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const DataSection& data) {
  if (data.divide.has_value() && !IsDivisor(*data.divide)) {
    return Wrong("divide", NumberText(*data.divide), kDivisors);
  }
  DFL_RETURN_IF_ERROR(CheckNumbers(data));
  const bool standardises =
      data.per.has_value() && *data.per != InputScaling::Per::kNone;
  if (!standardises) {
    if (!data.over.has_value() && data.mean.empty()) return absl::OkStatus();
    return Wrong("standardise",
                 absl::StrCat(data.over.has_value() ? "over" : "mean and std",
                              " given without per"),
                 "per: all, channel or feature beside it");
  }
  const auto over = data.over.value_or(InputScaling::Over::kNode);
  if (over == InputScaling::Over::kNode && !data.mean.empty()) {
    return Wrong("standardise", "mean and std given, and each node has its own",
                 "over: given, or no numbers");
  }
  if (over == InputScaling::Over::kGiven && data.mean.empty()) {
    return Wrong("standardise", "over: given, but no numbers are",
                 "mean and std; or over: network, to have them worked out by "
                 "`dflctl plan apply`");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckData(const DataSection& data, const ModelSpec& model) {
  DFL_RETURN_IF_ERROR(CheckClasses(data, model));
  DFL_RETURN_IF_ERROR(CheckShape(data));
  DFL_RETURN_IF_ERROR(CheckInput(data));
  const bool is_hash =
      data.model.size() == kHashDigits &&
      std::all_of(data.model.begin(), data.model.end(), [](unsigned char c) {
        return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
      });
  if (data.model.empty() || is_hash) return absl::OkStatus();
  return Wrong("model", absl::StrCat("\"", data.model, "\""),
               "the SHA-256 of the model, 64 hex digits, or nothing");
}

}  // namespace dfl::core
