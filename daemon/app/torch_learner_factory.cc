#include "daemon/app/torch_learner_factory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/cpu_quota.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/partition.h"
#include "daemon/data/dataset.h"
#include "daemon/data/load.h"
#include "daemon/data/standardizer.h"
#include "daemon/learner/torch_learner.h"

namespace dfl::app {
namespace {

using config::StandardiseSettings;
using data::Dataset;
using data::DatasetView;
using data::Standardizer;

absl::StatusOr<Standardizer> MakeStandardizer(
    const StandardiseSettings& settings, const DatasetView& train) {
  if (!settings.file.empty()) {
    return Standardizer::FromCsv(settings.file, train.dataset().row_size());
  }
  if (!settings.mean.empty() || !settings.std.empty()) {
    return Standardizer::FromValues(settings.mean, settings.std,
                                    "data.standardise");
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

class TorchLearnerFactory final : public LearnerFactory {
 public:
  TorchLearnerFactory(DatasetView train, std::optional<DatasetView> test,
                      Standardizer standardizer,
                      learner::LearnerOptions options)
      : train_(std::move(train)),
        test_(std::move(test)),
        standardizer_(std::move(standardizer)),
        options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec) override {
    learner::LearnerData data(train_);
    if (test_) data.test = *test_;
    data.standardizer = standardizer_;
    return learner::CreateTorchLearner(spec, std::move(data), options_);
  }

  absl::Status ExportTorchScript(
      ports::Learner& learner, absl::Span<const float> parameters,
      absl::Span<const float> buffers,
      const std::function<absl::Status(absl::string_view)>& sink) override {
    learner::TorchScriptExporter* exporter =
        learner::AsTorchScriptExporter(learner);
    if (exporter == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a ", learner.model().kind,
          " model has no TorchScript form; export it as safetensors"));
    }
    return exporter->ExportTorchScript(parameters, buffers, sink);
  }

  std::vector<std::string> Libraries() const override { return {}; }

 private:
  const DatasetView train_;
  const std::optional<DatasetView> test_;
  const Standardizer standardizer_;
  const learner::LearnerOptions options_;
};

// This node's rows of the training set.
absl::StatusOr<DatasetView> TakePart(const core::PartitionSpec& spec,
                                     DatasetView all) {
  if (spec.kind == "none") return all;
  if (all.dataset().is_regression() && core::SplitsByLabel(spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", spec.kind,
                     "\" splits by label and the data has none; use iid or "
                     "quantity"));
  }
  // Splitting without labels: every row counts as one class.
  std::vector<int64_t> labels(all.dataset().labels().begin(),
                              all.dataset().labels().end());
  labels.resize(all.dataset().rows());
  DFL_ASSIGN_OR_RETURN(
      const std::vector<int64_t> rows,
      core::Partition(spec, labels,
                      std::max<int64_t>(1, all.dataset().classes())));
  return all.Subset(rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LearnerFactory>> OpenTorchLearnerFactory(
    const config::NodeSettings& settings) {
  const config::DataSettings& data = settings.data;
  auto train = data::Load(data.TrainSpec());
  if (!train.ok()) return Annotate(train.status(), "data.train.paths");
  // A test set is numbered like the training set.
  std::optional<DatasetView> test;
  if (!data.test_paths.empty()) {
    data::DataSpec spec = data.TestSpec();
    if (spec.label_values.empty()) spec.label_values = train->class_names();
    auto loaded = data::Load(spec);
    if (!loaded.ok()) return Annotate(loaded.status(), "data.test.paths");
    test.emplace(std::make_shared<const Dataset>(*std::move(loaded)));
  }
  auto part =
      TakePart(data.partition,
               DatasetView(std::make_shared<const Dataset>(*std::move(train))));
  if (!part.ok()) return Annotate(part.status(), "data.partition");
  auto standardizer = MakeStandardizer(data.standardise, *part);
  if (standardizer.ok()) {
    const absl::Status fits = standardizer->CheckFits(part->dataset());
    if (!fits.ok()) return Annotate(fits, "data.standardise");
  } else {
    return Annotate(standardizer.status(), "data.standardise");
  }

  learner::LearnerOptions options;
  options.device = settings.compute.device;
  options.threads = static_cast<int>(
      settings.compute.threads > 0 ? settings.compute.threads : CpuQuota());
  options.data_seed = DeriveSeed(data.partition.seed, settings.name);
  return std::make_unique<TorchLearnerFactory>(
      *std::move(part), std::move(test), *std::move(standardizer),
      std::move(options));
}

}  // namespace dfl::app
