#include "daemon/config/node_data.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/conform.h"
#include "daemon/data/labels.h"
#include "daemon/data/load.h"
#include "daemon/data/partition.h"

namespace dfl::config {
namespace {

using data::Dataset;
using data::DatasetView;
using data::Standardizer;

absl::StatusOr<Dataset> Read(const data::DataSpec& spec,
                             absl::string_view section, absl::string_view set) {
  absl::StatusOr<Dataset> loaded = data::Load(spec);
  if (!loaded.ok()) {
    return Annotate(loaded.status(), absl::StrCat(section, ".", set, ".paths"));
  }
  return loaded;
}

DatasetView Shared(Dataset dataset) {
  return DatasetView(std::make_shared<const Dataset>(std::move(dataset)));
}

// Where absent features are 0 and the files do not say how many there are, both
// sets have as many as the wider one.
void WidenTogether(Dataset* train, Dataset* test) {
  if (!train->columns().width_is_at_least ||
      !test->columns().width_is_at_least || train->shape().size() != 1 ||
      test->shape().size() != 1) {
    return;
  }
  const int64_t width = std::max(train->row_size(), test->row_size());
  for (Dataset* set : {train, test}) {
    if (set->row_size() < width) *set = data::Widened(*set, width);
  }
}

// Whether a model takes the rows of both, in the same units.
absl::Status CheckAlike(const DataSettings& settings, const Dataset& train,
                        const Dataset& test, absl::string_view section) {
  const bool wider_elsewhere =
      train.columns().width_is_at_least && test.columns().width_is_at_least;
  if (!wider_elsewhere && train.shape() != test.shape()) {
    return absl::InvalidArgumentError(absl::StrCat(
        settings.test_paths[0], ": rows of shape (",
        absl::StrJoin(test.shape(), ", "), "); allowed: (",
        absl::StrJoin(train.shape(), ", "), "), as the training rows of ",
        settings.train_paths[0], " have"));
  }
  if (settings.common.divide == 0 && train.has_bytes() != test.has_bytes()) {
    const auto kind = [](const Dataset& set) {
      return set.has_bytes() ? "bytes, which are divided by 255"
                             : "floats, which are not divided";
    };
    return absl::InvalidArgumentError(absl::StrCat(
        settings.test_paths[0], ": holds ", kind(test), "; ",
        settings.train_paths[0], " holds ", kind(train),
        "; allowed: one type in both, or a number for both: ", section,
        ".divide: 255 if the floats go from 0 to 255, 1 if nothing is to be "
        "divided"));
  }
  return absl::OkStatus();
}

// Gives both sets the same classes: what either has.
absl::Status NumberTogether(int64_t classes, Dataset* train, Dataset* test) {
  if (train->class_names() == test->class_names()) return absl::OkStatus();
  std::vector<std::string> all = data::FoundClasses(*train);
  std::set<std::string> known(all.begin(), all.end());
  for (std::string& name : data::FoundClasses(*test)) {
    if (known.insert(name).second) all.push_back(std::move(name));
  }
  const auto found = static_cast<int64_t>(all.size());
  all = data::ClassesOf(std::move(all), classes);
  if (classes > 0 && found > classes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the labels of training and test files are ", data::SomeOf(all), ", ",
        found, " together; allowed: data.classes = ", classes));
  }
  for (Dataset* set : {train, test}) {
    DFL_ASSIGN_OR_RETURN(
        Dataset::Answers answers,
        data::Renumbered(set->answers(), all, "training and test files"));
    *set = set->With(std::move(answers), set->columns());
  }
  return absl::OkStatus();
}

// Of the node's part `own`, or of `all` rows that there are, as those of the
// network.
absl::StatusOr<Standardizer> MakeStandardizer(const DataSettings& node,
                                              const DatasetView& own,
                                              const DatasetView& all,
                                              const std::string& path) {
  const StandardiseSettings& settings = node.standardise;
  const double divide = node.common.divide;
  const DatasetView& train =
      settings.over == StandardiseSettings::Over::kNetwork ? all : own;
  if (!settings.file.empty()) {
    return Standardizer::FromCsv(settings.file, train.dataset().row_size(),
                                 divide);
  }
  if (!settings.mean.empty() || !settings.std.empty()) {
    return Standardizer::FromValues(settings.mean, settings.std, path, divide);
  }
  switch (settings.per) {
    case StandardiseSettings::Per::kNone:
      return Standardizer(divide);
    case StandardiseSettings::Per::kAll:
      return Standardizer::FromRows(train, Standardizer::Per::kAll, divide);
    case StandardiseSettings::Per::kChannel:
      return Standardizer::FromRows(train, Standardizer::Per::kChannel, divide);
    case StandardiseSettings::Per::kFeature:
      return Standardizer::FromRows(train, Standardizer::Per::kFeature, divide);
  }
  return Standardizer(divide);
}

absl::StatusOr<DatasetView> TakeRows(const data::PartitionSpec& spec,
                                     const DatasetView& all) {
  if (spec.kind == "none") return all;
  if (all.dataset().is_regression() && data::SplitsByLabel(spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", spec.kind,
                     "\" splits by label and the data has none; use iid or "
                     "quantity"));
  }
  // Splitting without labels: every row counts as one class.
  std::vector<int64_t> labels(all.dataset().labels().begin(),
                              all.dataset().labels().end());
  labels.resize(static_cast<size_t>(all.dataset().rows()));
  DFL_ASSIGN_OR_RETURN(
      const std::vector<int64_t> rows,
      data::Partition(spec, labels,
                      std::max<int64_t>(1, all.dataset().classes())));
  return all.Subset(rows);
}

}  // namespace

absl::StatusOr<DataFiles> ReadDataFiles(const DataSettings& settings,
                                        absl::string_view section) {
  DFL_ASSIGN_OR_RETURN(Dataset train,
                       Read(settings.TrainSpec(), section, "train"));
  if (settings.test_paths.empty()) {
    return DataFiles{Shared(std::move(train)), std::nullopt};
  }
  data::DataSpec spec = settings.TestSpec();
  spec.match.features = train.columns().names;
  spec.match.label = train.columns().label;
  spec.match.dropped = train.columns().dropped;
  if (spec.missing == data::Missing::kMean) {
    spec.match.fill = train.columns().fill;
  }
  DFL_ASSIGN_OR_RETURN(Dataset test, Read(spec, section, "test"));
  WidenTogether(&train, &test);
  absl::Status fits = CheckAlike(settings, train, test, section);
  if (fits.ok() && !train.is_regression()) {
    fits = NumberTogether(settings.common.classes, &train, &test);
  }
  if (!fits.ok()) return Annotate(fits, absl::StrCat(section, ".test.paths"));
  return DataFiles{Shared(std::move(train)), Shared(std::move(test))};
}

absl::StatusOr<NodeData> TakePart(const DataFiles& files,
                                  const DataSettings& settings, int64_t index,
                                  absl::string_view section) {
  data::PartitionSpec spec = settings.partition;
  spec.index = index;
  absl::StatusOr<DatasetView> part = TakeRows(spec, files.train);
  if (!part.ok()) {
    return Annotate(part.status(), absl::StrCat(section, ".partition"));
  }
  const std::string path = absl::StrCat(section, ".standardise");
  absl::StatusOr<Standardizer> standardizer =
      MakeStandardizer(settings, *part, files.train, path);
  if (!standardizer.ok()) return Annotate(standardizer.status(), path);
  const absl::Status fits = standardizer->CheckFits(part->dataset());
  if (!fits.ok()) return Annotate(fits, path);
  return NodeData{*std::move(part), files.test, *std::move(standardizer)};
}

}  // namespace dfl::config
