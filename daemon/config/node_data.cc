#include "daemon/config/node_data.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/load.h"
#include "daemon/data/partition.h"

namespace dfl::config {
namespace {

using data::Dataset;
using data::DatasetView;
using data::Standardizer;

absl::StatusOr<DatasetView> Read(const data::DataSpec& spec,
                                 absl::string_view section,
                                 absl::string_view set) {
  absl::StatusOr<Dataset> loaded = data::Load(spec);
  if (!loaded.ok()) {
    return Annotate(loaded.status(), absl::StrCat(section, ".", set, ".paths"));
  }
  return DatasetView(std::make_shared<const Dataset>(*std::move(loaded)));
}

absl::StatusOr<Standardizer> MakeStandardizer(
    const StandardiseSettings& settings, const DatasetView& train,
    const std::string& path) {
  if (!settings.file.empty()) {
    return Standardizer::FromCsv(settings.file, train.dataset().row_size());
  }
  if (!settings.mean.empty() || !settings.std.empty()) {
    return Standardizer::FromValues(settings.mean, settings.std, path);
  }
  switch (settings.per) {
    case StandardiseSettings::Per::kNone:
      return Standardizer();
    case StandardiseSettings::Per::kAll:
      return Standardizer::FromRows(train, Standardizer::Per::kAll);
    case StandardiseSettings::Per::kChannel:
      return Standardizer::FromRows(train, Standardizer::Per::kChannel);
    case StandardiseSettings::Per::kFeature:
      return Standardizer::FromRows(train, Standardizer::Per::kFeature);
  }
  return Standardizer();
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
  DFL_ASSIGN_OR_RETURN(DatasetView train,
                       Read(settings.TrainSpec(), section, "train"));
  DataFiles files{std::move(train), std::nullopt};
  if (settings.test_paths.empty()) return files;
  data::DataSpec spec = settings.TestSpec();
  if (spec.label_values.empty()) {
    spec.label_values = files.train.dataset().class_names();
  }
  DFL_ASSIGN_OR_RETURN(files.test, Read(spec, section, "test"));
  return files;
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
      MakeStandardizer(settings.standardise, *part, path);
  if (!standardizer.ok()) return Annotate(standardizer.status(), path);
  const absl::Status fits = standardizer->CheckFits(part->dataset());
  if (!fits.ok()) return Annotate(fits, path);
  return NodeData{*std::move(part), files.test, *std::move(standardizer)};
}

}  // namespace dfl::config
