#include "daemon/data/standardizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/data/csv.h"
#include "daemon/data/data_error.h"
#include "daemon/data/text.h"

namespace dfl {
namespace data {
namespace {

// Calls visit(feature, value / divide) for each value of each row, in order.
template <typename Visit>
void ForEachValue(const DatasetView& view, double divide, Visit visit) {
  const Dataset& dataset = view.dataset();
  const size_t d = static_cast<size_t>(dataset.row_size());
  for (int64_t i = 0; i < view.size(); ++i) {
    const size_t begin = static_cast<size_t>(view.row(i)) * d;
    if (dataset.has_bytes()) {
      const uint8_t* const x = dataset.bytes().data() + begin;
      for (size_t j = 0; j < d; ++j) visit(j, x[j] / divide);
    } else {
      const float* const x = dataset.floats().data() + begin;
      for (size_t j = 0; j < d; ++j) {
        visit(j, static_cast<double>(x[j]) / divide);
      }
    }
  }
}

}  // namespace

Standardizer::Standardizer(double divide) : divide_(divide) {
  DFL_CHECK(divide >= 0 && std::isfinite(divide));
}

Standardizer::Standardizer(std::vector<float> mean, std::vector<float> std,
                           double divide)
    : divide_(divide), mean_(std::move(mean)), std_(std::move(std)) {
  DFL_CHECK(divide >= 0 && std::isfinite(divide));
}

absl::StatusOr<Standardizer> Standardizer::FromRows(const DatasetView& view,
                                                    Per per, double divide) {
  if (view.size() == 0) {
    return absl::InvalidArgumentError(
        "standardisation: no rows to compute mean and std from; allowed: at "
        "least one, so give the node a larger part");
  }
  const Dataset& dataset = view.dataset();
  const size_t d = static_cast<size_t>(dataset.row_size());
  const double by = EffectiveDivide(divide, dataset.has_bytes());
  size_t groups = 1;
  if (per == Per::kChannel) groups = static_cast<size_t>(dataset.shape()[0]);
  if (per == Per::kFeature) groups = d;
  const size_t group_size = d / groups;
  const double count =
      static_cast<double>(view.size()) * static_cast<double>(group_size);
  std::vector<double> sum(groups, 0.0);
  std::vector<double> least(groups, INFINITY);
  std::vector<double> most(groups, -INFINITY);
  ForEachValue(view, by, [&](size_t j, double x) {
    const size_t g = j / group_size;
    sum[g] += x;
    least[g] = std::min(least[g], x);
    most[g] = std::max(most[g], x);
  });
  for (double& s : sum) s /= count;
  std::vector<double> squares(groups, 0.0);
  ForEachValue(view, by, [&](size_t j, double x) {
    const size_t g = j / group_size;
    squares[g] += (x - sum[g]) * (x - sum[g]);
  });
  std::vector<float> mean(groups);
  std::vector<float> std(groups);
  for (size_t g = 0; g < groups; ++g) {
    // The rounded mean of equal values may differ from them. So compare the
    // extremes to see whether a feature varies.
    const bool varies = least[g] < most[g];
    const double m = varies ? sum[g] : least[g];
    const double s = std::sqrt(squares[g] / count);
    if (!core::FitsFloat(m) || !core::FitsFloat(s)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "standardisation: divided by ", by, ", values of feature ", g,
          " have mean ", m, " and std ", s,
          "; allowed: what float32 holds, up to 3.4e38; set data.divide to a "
          "larger number"));
    }
    mean[g] = static_cast<float>(m);
    std[g] = varies && static_cast<float>(s) > 0 ? static_cast<float>(s) : 1.0f;
  }
  return Standardizer(std::move(mean), std::move(std), divide);
}

absl::StatusOr<Standardizer> Standardizer::FromValues(std::vector<float> mean,
                                                      std::vector<float> std,
                                                      const std::string& source,
                                                      double divide) {
  if (mean.empty() || mean.size() != std.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", mean.size(), " means and ", std.size(),
                     " stds; allowed: as many of each, at least one"));
  }
  for (size_t i = 0; i < mean.size(); ++i) {
    if (!std::isfinite(mean[i]) || !std::isfinite(std[i]) || std[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": entry ", i, ": mean ", mean[i], " and std ",
                       std[i], "; allowed: finite numbers, std not below 0"));
    }
    if (std[i] == 0) std[i] = 1.0f;
  }
  return Standardizer(std::move(mean), std::move(std), divide);
}

absl::StatusOr<Standardizer> Standardizer::FromCsv(const std::string& path,
                                                   int64_t features,
                                                   double divide) {
  DFL_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  std::string scratch;
  std::vector<absl::string_view> fields;
  const auto split = [&](absl::string_view line) -> absl::Status {
    const char* const wrong = SplitCsvLine(line, ',', &scratch, &fields);
    if (wrong == nullptr) return absl::OkStatus();
    return WrongContent(
        path,
        AtColumn(reader.line_number(), static_cast<int64_t>(fields.size())),
        absl::StrCat("the field ", wrong), "\"quoted\" fields within one line");
  };
  absl::string_view line;
  DFL_ASSIGN_OR_RETURN(bool more, reader.Next(&line));
  if (more) DFL_RETURN_IF_ERROR(split(line));
  const auto find = [&](absl::string_view name) {
    return static_cast<size_t>(std::find(fields.begin(), fields.end(), name) -
                               fields.begin());
  };
  const size_t width = fields.size();
  const size_t mean_column = find("mean");
  const size_t std_column = find("std");
  const size_t feature_column = find("feature");
  if (mean_column >= width || std_column >= width) {
    return WrongContent(path, AtLine(1), "no columns called mean and std",
                        "a header such as feature,mean,std");
  }
  std::vector<float> mean;
  std::vector<float> std;
  while (true) {
    DFL_ASSIGN_OR_RETURN(more, reader.Next(&line));
    if (!more) break;
    DFL_RETURN_IF_ERROR(split(line));
    const int64_t number = reader.line_number();
    if (fields.size() != width) {
      return WrongContent(path, AtLine(number),
                          absl::StrCat(fields.size(), " fields"),
                          absl::StrCat(width, ", as in the header"));
    }
    if (feature_column < width) {
      int64_t feature;
      if (!absl::SimpleAtoi(fields[feature_column], &feature) ||
          feature != static_cast<int64_t>(mean.size())) {
        return WrongContent(
            path, AtColumn(number, static_cast<int64_t>(feature_column) + 1),
            absl::StrCat("feature ", Quoted(fields[feature_column])),
            absl::StrCat(mean.size(), " (features in order, from 0)"));
      }
    }
    for (const size_t column : {mean_column, std_column}) {
      const bool is_std = column == std_column;
      float value = 0;
      const char* wrong = ParseFiniteFloat(fields[column], &value);
      if (wrong == nullptr && is_std && value < 0) wrong = "is negative";
      if (wrong != nullptr) {
        return WrongContent(
            path, AtColumn(number, static_cast<int64_t>(column) + 1),
            absl::StrCat(is_std ? "std " : "mean ", Quoted(fields[column]), " ",
                         wrong),
            is_std ? "a finite number not below 0" : "a finite number");
      }
      (is_std ? std : mean).push_back(value);
    }
  }
  if (static_cast<int64_t>(mean.size()) != features) {
    return WrongContent(path, AtLine(reader.line_number()),
                        absl::StrCat("means of ", mean.size(), " features"),
                        absl::StrCat(features, ", as the data set has"));
  }
  return FromValues(std::move(mean), std::move(std), path, divide);
}

absl::Status Standardizer::CheckFits(const Dataset& dataset) const {
  const int64_t n = static_cast<int64_t>(mean_.size());
  if (n <= 1 || n == dataset.shape()[0] || n == dataset.row_size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "standardisation: ", n, " means; allowed for this data set: 1, ",
      dataset.shape()[0], " (one a channel) or ", dataset.row_size(),
      " (one a feature)"));
}

}  // namespace data
}  // namespace dfl
