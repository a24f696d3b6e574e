#include "daemon/config/guess_data.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/guess_format.h"
#include "daemon/config/node_data.h"
#include "daemon/config/settings_table.h"

namespace dfl::config {
namespace {

// More repairs than this, and the files are no data.
constexpr int kMaxRepairs = 200;

// The text between `before` and `after` in `text`, if both are there.
std::optional<std::string> Between(absl::string_view text,
                                   absl::string_view before,
                                   absl::string_view after) {
  const size_t begin = text.find(before);
  if (begin == absl::string_view::npos) return std::nullopt;
  text.remove_prefix(begin + before.size());
  const size_t end = text.find(after);
  if (end == absl::string_view::npos) return std::nullopt;
  return std::string(text.substr(0, end));
}

// Changes `settings` as the refusal `text` advises, and returns the change in
// words; "" if it names no cure that can be taken without asking.
std::string Repair(absl::string_view text, DataSettings* settings) {
  data::DataSpec& spec = settings->common;
  if (absl::StrContains(text, "data.missing: mean") &&
      spec.missing == data::Missing::kRefuse) {
    const bool label =
        absl::StrContains(text, "label ") || absl::StrContains(text, "target ");
    spec.missing = label ? data::Missing::kDrop : data::Missing::kMean;
    return absl::StrCat("data.missing: ", label ? "drop" : "mean");
  }
  if (absl::StrContains(text, "data.missing: drop") &&
      spec.missing != data::Missing::kDrop) {
    spec.missing = data::Missing::kDrop;
    return "data.missing: drop";
  }
  if (absl::StrContains(text, "data.header: yes") &&
      spec.header == data::Header::kAuto) {
    spec.header = data::Header::kYes;
    return "data.header: yes";
  }
  if (const auto column = Between(text, "data.drop_columns: [\"", "\"]")) {
    spec.drop_columns.push_back(*column);
    return absl::StrCat("data.drop_columns: ", *column);
  }
  if (absl::StrContains(text, "data.index_base: 0") && spec.index_base == 1) {
    spec.index_base = 0;
    return "data.index_base: 0";
  }
  if (absl::StrContains(text, "data.layout: nhwc") &&
      spec.layout == data::Layout::kAuto) {
    spec.layout = data::Layout::kNhwc;
    return "data.layout: nhwc";
  }
  if (absl::StrContains(text, "data.task: regression") &&
      spec.task == data::Task::kClassification) {
    spec.task = data::Task::kRegression;
    return "data.task: regression";
  }
  if (absl::StrContains(text, "data.channels: 1") && spec.channels == 0) {
    spec.channels = 3;
    return "data.channels: 3";
  }
  if (absl::StrContains(text, "data.resize: [") && spec.resize.empty()) {
    const std::vector<std::string> sides =
        absl::StrSplit(Between(text, "allowed: ", ",").value_or(""), " x ");
    int64_t width;
    int64_t height;
    if (sides.size() == 2 && absl::SimpleAtoi(sides[0], &width) &&
        absl::SimpleAtoi(sides[1], &height)) {
      spec.resize = {height, width};
      return absl::StrCat("data.resize: [", height, ", ", width, "]");
    }
  }
  if (absl::StrContains(text, ".divide: 255") && spec.divide == 0) {
    spec.divide = 255;
    return "data.divide: 255";
  }
  return "";
}

// Whether the classes look like numbers to be predicted.
bool LooksLikeTargets(const data::DataReport& report) {
  if (report.is_regression) return false;
  const auto classes = static_cast<int64_t>(report.classes.size());
  bool numbers = true;
  bool fractions = false;
  for (const std::string& name : report.classes) {
    double number;
    if (!absl::SimpleAtod(name, &number)) {
      numbers = false;
      break;
    }
    fractions |= number != std::trunc(number);
  }
  return numbers &&
         (fractions || (classes > 50 && classes * 5 > report.train.rows));
}

// Reads the files with the settings.
absl::StatusOr<data::DataReport> Try(const DataSettings& settings) {
  DFL_ASSIGN_OR_RETURN(const DataFiles files, ReadDataFiles(settings, "data"));
  DFL_ASSIGN_OR_RETURN(const NodeData part,
                       TakePart(files, settings, 0, "data"));
  return data::Describe(part.train, part.test ? &*part.test : nullptr,
                        part.standardizer);
}

// What a warning advises and is safe to do: columns without a name that count
// rows, pixels, and features of very different size.
std::string Heed(absl::string_view warning, DataSettings* settings) {
  const bool index = absl::StrContains(warning, "has no name");
  const bool pixels = absl::StrContains(warning, "data.divide: 255");
  if (index || pixels) return Repair(warning, settings);
  if (absl::StrContains(warning, "data.standardise:") &&
      settings->standardise.per == StandardiseSettings::Per::kNone) {
    settings->standardise.per = StandardiseSettings::Per::kFeature;
    settings->standardise.over = StandardiseSettings::Over::kNetwork;
    return "data.standardise: {per: feature, over: network}";
  }
  return "";
}

}  // namespace

absl::StatusOr<DataGuess> GuessData(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        "no files given; allowed: the files to train on, and those to test on");
  }
  DataGuess guess;
  DFL_RETURN_IF_ERROR(GuessFormat(paths, &guess.settings, &guess.remarks));
  for (int repairs = 0;; ++repairs) {
    absl::StatusOr<data::DataReport> report = Try(guess.settings);
    std::string why;
    std::string change;
    if (!report.ok()) {
      why = std::string(report.status().message());
      change = Repair(why, &guess.settings);
    } else if (LooksLikeTargets(*report) &&
               (guess.settings.common.format == data::Format::kCsv ||
                guess.settings.common.format == data::Format::kLibsvm)) {
      why = absl::StrCat("the labels are ", report->classes.size(),
                         " different numbers, such as ", report->classes[0]);
      change = "data.task: regression";
      guess.settings.common.task = data::Task::kRegression;
    } else {
      for (const std::string& warning : report->warnings) {
        why = warning;
        change = Heed(warning, &guess.settings);
        if (!change.empty()) break;
      }
    }
    if (change.empty() || repairs == kMaxRepairs) {
      if (!report.ok()) return report.status();
      guess.report = *std::move(report);
      return guess;
    }
    guess.remarks.push_back(absl::StrCat(change, ", since ", why));
  }
}

std::string DataSectionYaml(const DataSettings& settings) {
  NodeSettings defaults;
  NodeSettings node;
  node.data = settings;
  std::string out = "data:\n";
  std::string open;  // the section inside it that we are in
  for (const Setting& setting : SettingsTable()) {
    if (!absl::StartsWith(setting.key, "data.")) continue;
    const std::string value = setting.get(node);
    // The format is the first thing to know of.
    if (value == setting.get(defaults) && setting.key != "data.format") {
      continue;
    }
    const std::vector<std::string> parts = absl::StrSplit(setting.key, '.');
    const std::string inner = parts.size() > 2 ? parts[1] : "";
    if (!inner.empty() && inner != open) {
      absl::StrAppend(&out, "  ", inner, ":\n");
    }
    open = inner;
    absl::StrAppend(&out, inner.empty() ? "  " : "    ", parts.back(), ": ",
                    value, "\n");
  }
  return out;
}

}  // namespace dfl::config
