#include "daemon/data/conform.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/labels.h"
#include "daemon/core/contract/shape.h"
#include "daemon/data/labels.h"

namespace dfl {
namespace data {
namespace {

// The columns `from` of every row of [rows, d].
template <typename T>
std::vector<T> Picked(absl::Span<const T> values, size_t d,
                      const std::vector<size_t>& from) {
  std::vector<T> out;
  out.reserve(values.size());
  for (size_t begin = 0; begin < values.size(); begin += d) {
    for (const size_t j : from) out.push_back(values[begin + j]);
  }
  return out;
}

// FILE, in which `dataset` was first seen, for errors.
std::string SourceOf(const Dataset& dataset) {
  for (const std::string& place : dataset.answers().class_places) {
    if (!place.empty()) return place.substr(0, place.find(": "));
  }
  return "the data";
}

// Where `dataset` has each of its classes first.
using Places = std::map<absl::string_view, absl::string_view>;

Places PlacesOf(const Dataset& dataset) {
  const Dataset::Answers& answers = dataset.answers();
  Places places;
  for (size_t c = 0; c < answers.class_places.size(); ++c) {
    if (answers.class_places[c].empty()) continue;
    places.emplace(answers.class_names[c], answers.class_places[c]);
  }
  return places;
}

absl::Status Unfit(const Dataset& dataset, absl::string_view field,
                   absl::string_view found, absl::string_view allowed,
                   absl::string_view cure) {
  return absl::InvalidArgumentError(
      absl::StrCat(SourceOf(dataset), ": ", field, ": ", found,
                   "; allowed: ", allowed, ", as the run says; ", cure));
}

absl::StatusOr<Dataset> WithFeatures(Dataset dataset,
                                     const core::DataContract& contract) {
  const std::vector<std::string>& own = dataset.columns().names;
  const std::vector<std::string>& names = contract.features;
  if (names.empty() || own.empty() || own == names) return dataset;
  std::vector<std::string> a = own;
  std::vector<std::string> b = names;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  if (a == b) return Reordered(dataset, names);
  std::vector<std::string> extra;
  std::vector<std::string> lacking;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(),
                      std::back_inserter(extra));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(),
                      std::back_inserter(lacking));
  return Unfit(dataset, "features",
               absl::StrCat(extra.empty() ? "" : "with ", SomeOf(extra),
                            extra.empty() || lacking.empty() ? "" : ", ",
                            lacking.empty() ? "" : "without ", SomeOf(lacking)),
               SomeOf(names),
               "data.drop_columns leaves columns out, data.feature_names names "
               "those of files without a header");
}

absl::StatusOr<Dataset> WithShape(Dataset dataset,
                                  const core::DataContract& contract) {
  if (dataset.shape() == contract.shape) return dataset;
  const bool widens =
      dataset.columns().width_is_at_least && dataset.shape().size() == 1 &&
      contract.shape.size() == 1 && contract.shape[0] > dataset.row_size();
  if (widens) return Widened(dataset, contract.shape[0]);
  return Unfit(
      dataset, "shape",
      absl::StrCat("rows of shape ", core::ShapeText(dataset.shape())),
      core::ShapeText(contract.shape),
      "data.shape, data.features, data.drop_columns and data.resize change it");
}

// The groups of features that share a mean, and how many features are in one.
size_t GroupsOf(const Dataset& dataset, core::InputScaling::Per per) {
  switch (per) {
    case core::InputScaling::Per::kNone:
      return 0;
    case core::InputScaling::Per::kAll:
      return 1;
    case core::InputScaling::Per::kChannel:
      return static_cast<size_t>(dataset.shape()[0]);
    case core::InputScaling::Per::kFeature:
      return static_cast<size_t>(dataset.row_size());
  }
  return 0;
}

Standardizer::Per PerOf(core::InputScaling::Per per) {
  if (per == core::InputScaling::Per::kAll) return Standardizer::Per::kAll;
  return per == core::InputScaling::Per::kChannel ? Standardizer::Per::kChannel
                                                  : Standardizer::Per::kFeature;
}

}  // namespace

absl::StatusOr<DatasetView> Conform(const DatasetView& view,
                                    const core::DataContract& contract) {
  const Dataset& own = view.dataset();
  const bool regression = contract.task == core::Task::kRegression;
  if (own.is_regression() != regression) {
    return Unfit(
        own, "task",
        core::TaskName(own.is_regression() ? core::Task::kRegression
                                           : core::Task::kClassification),
        core::TaskName(contract.task), "data.task sets it");
  }
  Dataset::Answers answers = own.answers();
  if (!regression && answers.class_names != contract.classes) {
    DFL_ASSIGN_OR_RETURN(answers,
                         Renumbered(answers, contract.classes,
                                    "the run; data.label_column names another "
                                    "column of labels"));
  }
  DFL_ASSIGN_OR_RETURN(
      Dataset dataset,
      WithFeatures(own.With(std::move(answers), own.columns()), contract));
  DFL_ASSIGN_OR_RETURN(dataset, WithShape(std::move(dataset), contract));
  return view.On(std::make_shared<const Dataset>(std::move(dataset)));
}

absl::StatusOr<Standardizer> ScalingOf(const core::DataContract& contract,
                                       const DatasetView& train) {
  const core::InputScaling& input = contract.input;
  if (input.per == core::InputScaling::Per::kNone) {
    return Standardizer(input.divide);
  }
  if (input.over == core::InputScaling::Over::kNode) {
    return Standardizer::FromRows(train, PerOf(input.per), input.divide);
  }
  DFL_ASSIGN_OR_RETURN(
      Standardizer scaling,
      Standardizer::FromValues(input.mean, input.std,
                               "the run's standardisation", input.divide));
  DFL_RETURN_IF_ERROR(scaling.CheckFits(train.dataset()));
  return scaling;
}

core::Moments MomentsOf(const DatasetView& view, core::InputScaling::Per per,
                        double divide) {
  core::Moments moments;
  const Dataset& dataset = view.dataset();
  const size_t groups = GroupsOf(dataset, per);
  if (groups == 0) return moments;
  const auto d = static_cast<size_t>(dataset.row_size());
  const size_t group_size = d / groups;
  moments.count = view.size() * static_cast<int64_t>(group_size);
  moments.sums.assign(groups, 0.0);
  moments.squares.assign(groups, 0.0);
  const auto value = [&](int64_t i, size_t j) {
    const size_t at = static_cast<size_t>(view.row(i)) * d + j;
    return (dataset.has_bytes() ? static_cast<double>(dataset.bytes()[at])
                                : static_cast<double>(dataset.floats()[at])) /
           divide;
  };
  for (int64_t i = 0; i < view.size(); ++i) {
    for (size_t j = 0; j < d; ++j) moments.sums[j / group_size] += value(i, j);
  }
  for (int64_t i = 0; i < view.size(); ++i) {
    for (size_t j = 0; j < d; ++j) {
      const size_t g = j / group_size;
      const double from_mean =
          value(i, j) - moments.sums[g] / static_cast<double>(moments.count);
      moments.squares[g] += from_mean * from_mean;
    }
  }
  return moments;
}

core::DataOffer OfferOf(const Dataset& train, const Dataset* test) {
  core::DataOffer offer;
  offer.shape = train.shape();
  offer.shape_is_at_least = train.columns().width_is_at_least;
  offer.features = train.columns().names;
  if (train.is_regression()) {
    offer.task = core::Task::kRegression;
    return offer;
  }
  offer.classes_stated = train.answers().classes_stated;
  if (offer.classes_stated) {
    offer.classes = train.class_names();
  } else {
    offer.classes = FoundClasses(train);
    const std::vector<std::string> more =
        test == nullptr ? std::vector<std::string>() : FoundClasses(*test);
    offer.classes.insert(offer.classes.end(), more.begin(), more.end());
    offer.classes = core::SortedLabels(offer.classes);
  }
  Places places = PlacesOf(train);
  if (test != nullptr) places.merge(PlacesOf(*test));
  for (const std::string& name : offer.classes) {
    const auto found = places.find(name);
    offer.class_places.emplace_back(found == places.end() ? "" : found->second);
  }
  return offer;
}

Dataset Widened(const Dataset& dataset, int64_t width) {
  const auto d = static_cast<size_t>(dataset.row_size());
  const auto wide = static_cast<size_t>(width);
  DFL_CHECK(!dataset.has_bytes() && dataset.shape().size() == 1 && wide >= d);
  const absl::Span<const float> in = dataset.floats();
  std::vector<float> out(static_cast<size_t>(dataset.rows()) * wide, 0.0f);
  for (size_t row = 0; row * d < in.size(); ++row) {
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(row * d), d,
                out.begin() + static_cast<std::ptrdiff_t>(row * wide));
  }
  Dataset::Columns columns = dataset.columns();
  if (!columns.missing.empty()) columns.missing.resize(wide);
  if (!columns.fill.empty()) columns.fill.resize(wide);
  columns.names.clear();
  return Dataset({width}, std::move(out), dataset.answers(),
                 std::move(columns));
}

Dataset Reordered(const Dataset& dataset,
                  const std::vector<std::string>& names) {
  const std::vector<std::string>& own = dataset.columns().names;
  const auto d = static_cast<size_t>(dataset.row_size());
  DFL_CHECK(own.size() == d && names.size() == d);
  std::map<absl::string_view, size_t> place_of;
  for (size_t j = 0; j < d; ++j) place_of.emplace(own[j], j);
  std::vector<size_t> from;
  for (const std::string& name : names) {
    const auto found = place_of.find(name);
    DFL_CHECK(found != place_of.end());
    from.push_back(found->second);
  }
  Dataset::Columns columns = dataset.columns();
  columns.names = names;
  if (!columns.missing.empty()) {
    columns.missing = Picked<int64_t>(dataset.columns().missing, d, from);
  }
  if (!columns.fill.empty()) {
    columns.fill = Picked<float>(dataset.columns().fill, d, from);
  }
  if (dataset.has_bytes()) {
    return Dataset(dataset.shape(), Picked<uint8_t>(dataset.bytes(), d, from),
                   dataset.answers(), std::move(columns));
  }
  return Dataset(dataset.shape(), Picked<float>(dataset.floats(), d, from),
                 dataset.answers(), std::move(columns));
}

}  // namespace data
}  // namespace dfl
