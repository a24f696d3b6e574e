#include "daemon/data/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/core/contract/shape.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"

namespace dfl {
namespace data {
namespace {

std::string Number(double x) { return absl::StrFormat("%.6g", x); }

// "feature 3 ('age')".
std::string FeatureName(const DataReport& report, size_t i) {
  const std::string& name = report.features[i].name;
  return absl::StrCat(
      report.are_channels ? "channel " : "feature ", i,
      name.empty() ? "" : absl::StrCat(" (", Quoted(name), ")"));
}

SetReport DescribeSet(const DatasetView& view) {
  SetReport report;
  const Dataset& dataset = view.dataset();
  report.rows = view.size();
  report.dropped_rows = dataset.columns().dropped_rows;
  report.class_counts = view.LabelCounts();
  if (!dataset.is_regression() || view.size() == 0) return report;
  report.least = INFINITY;
  report.most = -INFINITY;
  for (int64_t i = 0; i < view.size(); ++i) {
    const auto target = static_cast<double>(
        dataset.targets()[static_cast<size_t>(view.row(i))]);
    report.least = std::min(report.least, target);
    report.most = std::max(report.most, target);
    report.mean += target / static_cast<double>(view.size());
  }
  return report;
}

std::vector<FeatureReport> DescribeFeatures(const DatasetView& view,
                                            bool channels) {
  const Dataset& dataset = view.dataset();
  const auto d = static_cast<size_t>(dataset.row_size());
  const size_t groups = channels ? static_cast<size_t>(dataset.shape()[0]) : d;
  const size_t group_size = d / groups;
  std::vector<FeatureReport> out(groups);
  for (size_t g = 0; g < groups; ++g) {
    out[g].least = INFINITY;
    out[g].most = -INFINITY;
    if (!channels && !dataset.columns().names.empty()) {
      out[g].name = dataset.columns().names[g];
    }
    if (!channels && !dataset.columns().missing.empty()) {
      out[g].missing = dataset.columns().missing[g];
    }
  }
  const double share = 1.0 / (static_cast<double>(view.size()) *
                              static_cast<double>(group_size));
  for (int64_t i = 0; i < view.size(); ++i) {
    const size_t begin = static_cast<size_t>(view.row(i)) * d;
    for (size_t j = 0; j < d; ++j) {
      const double x = dataset.has_bytes()
                           ? static_cast<double>(dataset.bytes()[begin + j])
                           : static_cast<double>(dataset.floats()[begin + j]);
      FeatureReport& feature = out[j / group_size];
      feature.least = std::min(feature.least, x);
      feature.most = std::max(feature.most, x);
      feature.mean += x * share;
    }
  }
  return out;
}

std::string ScalingText(const DatasetView& train, const Standardizer& scaling) {
  const Dataset& dataset = train.dataset();
  std::string text = absl::StrCat(dataset.has_bytes() ? "bytes" : "numbers",
                                  " / ", Number(scaling.DivideOf(dataset)));
  const size_t groups = scaling.mean().size();
  if (groups == 0) return absl::StrCat(text, ", not standardised");
  absl::StrAppend(&text, ", standardised with ");
  if (groups <= 4) {
    absl::StrAppend(&text, "mean ", absl::StrJoin(scaling.mean(), ", "),
                    " and std ", absl::StrJoin(scaling.std(), ", "));
  } else {
    absl::StrAppend(&text, groups, " means and stds, one a feature");
  }
  return text;
}

// Names a few of the features `which`.
std::string FeatureNames(const DataReport& report,
                         const std::vector<size_t>& which) {
  constexpr size_t kShown = 5;
  std::vector<std::string> names;
  for (size_t k = 0; k < which.size() && k < kShown; ++k) {
    names.push_back(FeatureName(report, which[k]));
  }
  return absl::StrCat(
      absl::StrJoin(names, ", "),
      which.size() > kShown
          ? absl::StrCat(" and ", which.size() - kShown, " more")
          : "");
}

// What was divided before is divided again: as if all of it were 0.
void WarnOfDivision(double divide, double least, double most,
                    DataReport* report) {
  constexpr double kMuch = 100;
  if (divide < kMuch || least < 0 || most > 1 || most == 0) return;
  report->warnings.push_back(absl::StrCat(
      "all features lie in 0 to 1 and are divided by ", Number(divide), "; ",
      report->are_bytes
          ? "if they are no pixels, set data.divide: 1"
          : absl::StrCat("if they were divided before, multiply them by ",
                         Number(divide),
                         " in the files, or divide those of the other nodes "
                         "and set data.divide: 1")));
}

void WarnOfFeatures(bool standardised, double divide, DataReport* report) {
  std::vector<size_t> constant;
  std::vector<size_t> wide;
  std::vector<size_t> inexact;
  bool pixels = !report->are_bytes && divide == 1 && !standardised;
  double least = 0;
  double most = 0;
  for (size_t i = 0; i < report->features.size(); ++i) {
    const FeatureReport& feature = report->features[i];
    const double reach =
        std::max(std::fabs(feature.least), std::fabs(feature.most));
    if (feature.least == feature.most) constant.push_back(i);
    if (reach / divide > 1000 && !standardised) wide.push_back(i);
    if (reach > 16777216) inexact.push_back(i);
    pixels = pixels && feature.least >= 0 && feature.most <= 255;
    least = std::min(least, feature.least);
    most = std::max(most, feature.most);
  }
  pixels = pixels && most >= 128 &&
           (report->are_channels || report->features.size() >= 16);
  WarnOfDivision(divide, least, most, report);
  std::vector<std::string>& warnings = report->warnings;
  if (pixels) {
    warnings.push_back(
        "all features lie in 0 to 255 and are not divided; if they are pixels, "
        "set data.divide: 255, as is done with bytes");
  }
  if (!wide.empty()) {
    warnings.push_back(absl::StrCat(
        FeatureNames(*report, wide), wide.size() == 1 ? " goes" : " go",
        " beyond 1000 (up to ",
        Number(std::max(std::fabs(report->features[wide[0]].least),
                        std::fabs(report->features[wide[0]].most))),
        ") and nothing scales it; training may diverge; data.standardise: "
        "{per: feature, over: network} scales alike on all nodes"));
  }
  if (!inexact.empty()) {
    warnings.push_back(absl::StrCat(
        FeatureNames(*report, inexact),
        ": values above 16777216 are rounded in float32; an identifier is no "
        "feature (data.drop_columns)"));
  }
  // A border of images is constant, which is nothing to tell.
  if (!constant.empty() && report->shape.size() == 1 &&
      constant.size() < report->features.size()) {
    warnings.push_back(
        absl::StrCat(FeatureNames(*report, constant),
                     constant.size() == 1
                         ? " has the same value in every row, and carries no "
                           "information"
                         : " have the same value in every row, and carry no "
                           "information"));
  }
  if (constant.size() == report->features.size()) {
    warnings.push_back("every feature has the same value in every row");
  }
}

void WarnOfClasses(DataReport* report) {
  if (report->is_regression) {
    if (report->train.least == report->train.most) {
      report->warnings.push_back(absl::StrCat("every row has the target ",
                                              Number(report->train.least)));
    }
    return;
  }
  const std::vector<int64_t>& counts = report->train.class_counts;
  std::vector<std::string> present;
  std::vector<std::string> untrained;
  for (size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 0) {
      present.push_back(report->classes[c]);
    } else if (report->test && report->test->class_counts[c] > 0) {
      untrained.push_back(report->classes[c]);
    }
  }
  if (present.size() == 1) {
    report->warnings.push_back(absl::StrCat(
        "every training row is of class ", Quoted(present[0]),
        "; this node alone learns nothing, and with others only from them"));
  }
  if (!untrained.empty()) {
    report->warnings.push_back(absl::StrCat(
        "the test files have classes that no training row of this node has: ",
        SomeOf(untrained)));
  }
  if (present.size() > 50 &&
      static_cast<int64_t>(2 * present.size()) > report->train.rows) {
    report->warnings.push_back(absl::StrCat(
        present.size(), " classes in ", report->train.rows,
        " rows; is data.label_column right, or should data.task be "
        "regression?"));
  }
}

std::string SetText(const DataReport& report, const SetReport& set) {
  std::string text = absl::StrCat(set.rows, " rows");
  if (set.dropped_rows > 0) {
    absl::StrAppend(&text, " (", set.dropped_rows,
                    " of the files dropped for a missing value)");
  }
  if (report.is_regression) {
    return absl::StrCat(text, ", targets ", Number(set.least), " to ",
                        Number(set.most), ", mean ", Number(set.mean));
  }
  return text;
}

}  // namespace

DataReport Describe(const DatasetView& train, const DatasetView* test,
                    const Standardizer& scaling) {
  const Dataset& dataset = train.dataset();
  DataReport report;
  report.is_regression = dataset.is_regression();
  report.classes = dataset.class_names();
  for (int64_t c = static_cast<int64_t>(report.classes.size());
       c < dataset.classes(); ++c) {
    report.classes.push_back(absl::StrCat(c));
  }
  report.classes_stated = dataset.answers().classes_stated;
  report.shape = dataset.shape();
  report.width_is_at_least = dataset.columns().width_is_at_least;
  report.are_bytes = dataset.has_bytes();
  report.are_channels = dataset.shape().size() == 3;
  report.features = DescribeFeatures(train, report.are_channels);
  report.train = DescribeSet(train);
  report.memory_bytes = dataset.memory_bytes();
  report.warnings = dataset.columns().warnings;
  if (test != nullptr) {
    report.test = DescribeSet(*test);
    report.memory_bytes += test->dataset().memory_bytes();
    for (const std::string& warning : test->dataset().columns().warnings) {
      report.warnings.push_back(warning);
    }
  }
  report.scaling = ScalingText(train, scaling);
  WarnOfClasses(&report);
  report.unscaled_warnings = report.warnings;
  WarnOfFeatures(!scaling.mean().empty(), scaling.DivideOf(dataset), &report);
  return report;
}

std::vector<std::string> WarningsUnder(const DataReport& report,
                                       bool standardised, double divide) {
  DataReport copy = report;
  copy.warnings = copy.unscaled_warnings;
  WarnOfFeatures(standardised, divide, &copy);
  return copy.warnings;
}

std::string ReportText(const DataReport& report) {
  std::string out;
  absl::StrAppend(&out, "training: ", SetText(report, report.train), "\n");
  absl::StrAppend(&out, "test:     ",
                  report.test ? SetText(report, *report.test) : "none", "\n");
  if (!report.is_regression) {
    absl::StrAppend(
        &out, "classes:  ", report.classes.size(),
        report.classes_stated ? ", in the order of label_values" : "", "\n");
    constexpr size_t kShown = 40;
    for (size_t c = 0; c < report.classes.size() && c < kShown; ++c) {
      absl::StrAppendFormat(&out, "  %-20s %d rows", report.classes[c],
                            report.train.class_counts[c]);
      if (report.test) {
        absl::StrAppendFormat(&out, ", %d to test",
                              report.test->class_counts[c]);
      }
      out.push_back('\n');
    }
    if (report.classes.size() > kShown) {
      absl::StrAppend(&out, "  and ", report.classes.size() - kShown,
                      " more\n");
    }
  }
  absl::StrAppend(
      &out, "a row:    ", report.are_bytes ? "bytes" : "numbers", " of shape ",
      core::ShapeText(report.shape),
      report.width_is_at_least ? ", or wider where other nodes have more" : "",
      "\n");
  constexpr size_t kShown = 30;
  for (size_t i = 0; i < report.features.size() && i < kShown; ++i) {
    const FeatureReport& feature = report.features[i];
    absl::StrAppend(
        &out, "  ", FeatureName(report, i), ": ", Number(feature.least), " to ",
        Number(feature.most), ", mean ", Number(feature.mean),
        feature.missing > 0 ? absl::StrCat(", ", feature.missing, " missing")
                            : "",
        "\n");
  }
  if (report.features.size() > kShown) {
    absl::StrAppend(&out, "  and ", report.features.size() - kShown, " more\n");
  }
  absl::StrAppend(&out, "scaling:  ", report.scaling, "\n");
  for (const std::string& warning : report.warnings) {
    absl::StrAppend(&out, "warning: ", warning, "\n");
  }
  return out;
}

}  // namespace data
}  // namespace dfl
