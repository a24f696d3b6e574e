#include "daemon/app/models/data_learners.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/compute/cpu_quota.h"
#include "daemon/app/compute/cpu_readings.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/node_contract.h"
#include "daemon/config/node_data.h"
#include "daemon/data/report.h"
#include "daemon/learner/catalogue/batch_learner.h"
#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/learner/opening/torch_module.h"

namespace dfl::app {
namespace {

constexpr char kSection[] = "data";

control::DataReport ToControl(const data::DataReport& from,
                              absl::string_view format) {
  constexpr size_t kMostFeatures = 1000;
  control::DataReport report;
  report.format = std::string(format);
  report.train_rows = from.train.rows;
  report.test_rows = from.test.has_value() ? from.test->rows : 0;
  const auto count = [](const data::SetReport& set, size_t i) {
    return i < set.class_counts.size() ? set.class_counts[i] : 0;
  };
  for (size_t i = 0; i < from.classes.size(); ++i) {
    report.classes.push_back(
        {from.classes[i], count(from.train, i),
         from.test.has_value() ? count(*from.test, i) : 0});
  }
  report.feature_count = static_cast<int64_t>(from.features.size());
  for (size_t i = 0; i < std::min(from.features.size(), kMostFeatures); ++i) {
    const data::FeatureReport& feature = from.features[i];
    report.features.push_back({feature.name, feature.least, feature.most,
                               feature.mean, feature.missing});
  }
  report.warnings = from.warnings;
  return report;
}

class DataLearners final : public LearnerFactory {
 public:
  DataLearners(config::NodeData data, config::DataSettings settings,
               learner::LearnerOptions options, Computing computing)
      : data_(std::move(data)),
        settings_(std::move(settings)),
        options_(std::move(options)),
        computing_(std::move(computing)) {}

  absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* spec, const core::DataSection& section) override {
    core::DataOffer offer = config::MakeOffer(data_, settings_, section);
    if (spec == nullptr) return offer;
    DFL_ASSIGN_OR_RETURN(
        learner::ModelIdentity identity,
        computing_.models->Identify(*spec, offer.task, offer.shape));
    offer.loss = std::move(identity.loss);
    offer.model = std::move(identity.model);
    return offer;
  }

  control::DataReport Report() override {
    return ToControl(Described(), data::FormatName(settings_.common.format));
  }

  std::vector<std::string> Warnings(
      const core::InputScaling& scaling) override {
    return data::WarningsUnder(Described(),
                               scaling.per != core::InputScaling::Per::kNone,
                               scaling.divide);
  }

  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec, const core::DataContract& contract,
      int64_t batch_size) override {
    DFL_ASSIGN_OR_RETURN(config::NodeData rows,
                         config::ConformTo(contract, data_));
    learner::LearnerData data(rows.train);
    if (rows.test.has_value()) data.test = *rows.test;
    data.standardizer = rows.standardizer;
    data.contract = contract;
    core::ModelSpec resolved = spec;
    resolved.classes = static_cast<int64_t>(contract.classes.size());
    learner::LearnerOptions options = options_;
    options.batch_size = batch_size;
    return computing_.models->Create(resolved, std::move(data), options);
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

  std::string EngineOf(const ports::Learner& learner) const override {
    return learner::EngineOf(learner);
  }

  ThreadChoice Threads(const std::string& engine) const override {
    if (engine == learner::kPlainEngine) {
      return {1, "the plain learner trains on one"};
    }
    return computing_.threads->choice();
  }

  std::vector<std::string> Libraries() const override {
    return computing_.models->Libraries();
  }

 private:
  const data::DataReport& Described() {
    if (!report_.has_value()) {
      report_ = data::Describe(data_.train, data_.test ? &*data_.test : nullptr,
                               data_.standardizer);
    }
    return *report_;
  }

  const config::NodeData data_;
  const config::DataSettings settings_;
  const learner::LearnerOptions options_;
  const Computing computing_;
  std::optional<data::DataReport> report_;  // once somebody has asked
};

}  // namespace

Computing MakeComputing(const config::NodeSettings& settings) {
  const CpuQuota quota = FindCpuQuota();
  return {
      std::make_shared<learner::ModelLearners>(learner::TorchModulePlaces()),
      std::make_shared<TrainingThreads>(
          static_cast<int>(settings.compute.threads),
          CpuBounds{static_cast<int>(quota.processors.size()), quota.limit},
          [quota] { return ReadCpu(quota); })};
}

absl::StatusOr<std::unique_ptr<LearnerFactory>> OpenDataLearners(
    const config::NodeSettings& settings, const Computing& computing) {
  const absl::Status device =
      computing.models->CheckDevice(settings.compute.device);
  if (!device.ok()) {  // which one, the settings have to say
    return absl::InvalidArgumentError(
        absl::StrCat("compute.device: ", device.message()));
  }
  const config::DataSettings& data = settings.data;
  DFL_ASSIGN_OR_RETURN(const config::DataFiles files,
                       config::ReadDataFiles(data, kSection));
  DFL_ASSIGN_OR_RETURN(
      config::NodeData part,
      config::TakePart(files, data, data.partition.index, kSection));
  learner::LearnerOptions options;
  options.device = settings.compute.device;
  options.threads = [threads = computing.threads] { return threads->Now(); };
  options.data_seed = DeriveSeed(data.partition.seed, settings.name);
  return std::make_unique<DataLearners>(std::move(part), data,
                                        std::move(options), computing);
}

}  // namespace dfl::app
