#include "daemon/data/labels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/one_line.h"
#include "daemon/base/utf8.h"
#include "daemon/core/contract/labels.h"
#include "daemon/data/data_error.h"
#include "daemon/data/spec_checks.h"
#include "daemon/data/text.h"

namespace dfl {
namespace data {

std::vector<std::string> ClassesOf(std::vector<std::string> found,
                                   int64_t classes) {
  const bool in_range =
      classes > 0 &&
      std::all_of(found.begin(), found.end(), [&](const std::string& name) {
        const std::optional<int64_t> integer = core::IntegerLabel(name);
        return integer.has_value() && *integer >= 0 && *integer < classes;
      });
  if (!in_range) return core::SortedLabels(found);
  std::vector<std::string> all;
  for (int64_t c = 0; c < classes; ++c) all.push_back(absl::StrCat(c));
  return all;
}

absl::StatusOr<Dataset::Answers> Renumbered(
    const Dataset::Answers& answers, const std::vector<std::string>& names,
    absl::string_view source) {
  std::map<std::string, int64_t> number_of;
  for (size_t c = 0; c < names.size(); ++c) {
    number_of.emplace(core::CanonicalLabel(names[c]), static_cast<int64_t>(c));
  }
  constexpr int64_t kNowhere = -1;
  const auto own = static_cast<size_t>(answers.classes);
  std::vector<int64_t> new_of(own, kNowhere);
  Dataset::Answers out;
  out.classes = static_cast<int64_t>(names.size());
  out.class_names = names;
  out.class_places.resize(names.size());
  out.classes_stated = answers.classes_stated;
  for (size_t c = 0; c < own; ++c) {
    const auto found = number_of.find(
        answers.class_names.empty() ? absl::StrCat(c) : answers.class_names[c]);
    if (found == number_of.end()) continue;
    new_of[c] = found->second;
    if (answers.class_places.empty()) continue;
    out.class_places[static_cast<size_t>(found->second)] =
        answers.class_places[c];
  }
  out.labels.reserve(answers.labels.size());
  for (const int64_t label : answers.labels) {
    const auto c = static_cast<size_t>(label);
    if (new_of[c] == kNowhere) {
      return absl::InvalidArgumentError(absl::StrCat(
          answers.class_places.empty() ? std::string("the data")
                                       : answers.class_places[c],
          ": label ",
          Quoted(answers.class_names.empty() ? absl::StrCat(c)
                                             : answers.class_names[c]),
          "; allowed: ", SomeOf(names), ", the classes of ", source));
    }
    out.labels.push_back(new_of[c]);
  }
  return out;
}

std::vector<std::string> FoundClasses(const Dataset& dataset) {
  const Dataset::Answers& answers = dataset.answers();
  std::vector<bool> found(static_cast<size_t>(answers.classes));
  for (const int64_t label : answers.labels) {
    found[static_cast<size_t>(label)] = true;
  }
  std::vector<std::string> names;
  for (size_t c = 0; c < found.size(); ++c) {
    if (!found[c]) continue;
    names.push_back(answers.class_names.empty() ? absl::StrCat(c)
                                                : answers.class_names[c]);
  }
  return names;
}

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  constexpr size_t kShownBytes = 80;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    OneLine(StartOf(names[i], kShownBytes)),
                    names[i].size() > kShownBytes ? "..." : "");
  }
  if (names.size() > kShown) {
    absl::StrAppend(&text, ", ... (", names.size(), " in all)");
  }
  return text;
}

LabelCollector::LabelCollector(const DataSpec& spec) : spec_(spec) {
  for (size_t i = 0; i < spec.label_values.size(); ++i) {
    values_.emplace(core::CanonicalLabel(spec.label_values[i]),
                    Value{static_cast<int64_t>(i), ""});
  }
}

bool LabelCollector::IsStated(absl::string_view token) const {
  return !spec_.label_values.empty() &&
         values_.count(core::CanonicalLabel(token)) > 0;
}

absl::Status LabelCollector::Add(absl::string_view token,
                                 const std::string& file, Place place) {
  auto found = values_.find(token);
  if (found == values_.end()) {
    std::string canonical = core::CanonicalLabel(token);
    found = values_.find(canonical);
    if (found == values_.end()) {
      if (!spec_.label_values.empty()) {
        return WrongContent(
            file, place(), absl::StrCat("label ", Quoted(token)),
            absl::StrCat(SomeOf(spec_.label_values),
                         ", as data.label_values lists; add it there"));
      }
      if (values_.size() >= static_cast<size_t>(kMaxClasses)) {
        return WrongContent(
            file, place(),
            absl::StrCat("label ", Quoted(token), " is one too many"),
            absl::StrCat("at most ", kMaxClasses,
                         " different labels; is this the label column?"));
      }
      Value value{static_cast<int64_t>(values_.size()), ""};
      found = values_.emplace(std::move(canonical), std::move(value)).first;
    }
  }
  if (found->second.first_place.empty()) {
    found->second.first_place = absl::StrCat(file, ": ", place());
  }
  ids_.push_back(found->second.id);
  return absl::OkStatus();
}

absl::StatusOr<Dataset::Answers> LabelCollector::Finish() {
  if (spec_.label_values.empty()) return FinishInOrder();
  Dataset::Answers answers;
  answers.classes = static_cast<int64_t>(spec_.label_values.size());
  answers.class_names.resize(spec_.label_values.size());
  answers.class_places.resize(spec_.label_values.size());
  answers.classes_stated = true;
  for (auto& [spelling, value] : values_) {
    const auto c = static_cast<size_t>(value.id);
    answers.class_names[c] = spelling;
    answers.class_places[c] = std::move(value.first_place);
  }
  answers.labels = std::move(ids_);
  return answers;
}

absl::StatusOr<Dataset::Answers> LabelCollector::FinishInOrder() {
  std::vector<std::string> found_names;
  for (const auto& entry : values_) found_names.push_back(entry.first);
  const size_t distinct = found_names.size();
  std::vector<std::string> names =
      ClassesOf(std::move(found_names), spec_.classes);
  if (spec_.classes > 0 && static_cast<int64_t>(distinct) > spec_.classes) {
    // The first that is out of range, else the last in order.
    std::string worst = names.back();
    if (core::IntegerLabel(names.front()).value_or(0) < 0) {
      worst = names.front();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        values_.find(worst)->second.first_place, ": label ", Quoted(worst),
        " is one of ", distinct, " different ones; allowed: data.classes = ",
        spec_.classes, " of them, or the integers 0 to ", spec_.classes - 1));
  }
  Dataset::Answers answers;
  answers.classes = static_cast<int64_t>(names.size());
  std::vector<int64_t> class_of(values_.size());  // by id
  for (size_t c = 0; c < names.size(); ++c) {
    const auto found = values_.find(names[c]);
    answers.class_places.emplace_back();
    if (found == values_.end()) continue;
    answers.class_places.back() = std::move(found->second.first_place);
    class_of[static_cast<size_t>(found->second.id)] = static_cast<int64_t>(c);
  }
  answers.class_names = std::move(names);
  answers.labels = std::move(ids_);
  for (int64_t& label : answers.labels) {
    label = class_of[static_cast<size_t>(label)];
  }
  return answers;
}

}  // namespace data
}  // namespace dfl
