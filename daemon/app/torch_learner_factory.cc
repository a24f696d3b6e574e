#include "daemon/app/torch_learner_factory.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/cpu_quota.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/node_data.h"
#include "daemon/learner/torch_learner.h"

namespace dfl::app {
namespace {

constexpr char kSection[] = "data";

class TorchLearnerFactory final : public LearnerFactory {
 public:
  TorchLearnerFactory(config::NodeData data, learner::LearnerOptions options)
      : data_(std::move(data)), options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec) override {
    learner::LearnerData data(data_.train);
    if (data_.test) data.test = *data_.test;
    data.standardizer = data_.standardizer;
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

  std::vector<std::string> Libraries() const override {
    return {absl::StrCat("torch ", learner::TorchVersion())};
  }

 private:
  const config::NodeData data_;
  const learner::LearnerOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LearnerFactory>> OpenTorchLearnerFactory(
    const config::NodeSettings& settings) {
  const absl::Status device = learner::CheckDevice(settings.compute.device);
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
  options.threads = static_cast<int>(
      settings.compute.threads > 0 ? settings.compute.threads : CpuQuota());
  options.data_seed = DeriveSeed(data.partition.seed, settings.name);
  return std::make_unique<TorchLearnerFactory>(std::move(part),
                                               std::move(options));
}

}  // namespace dfl::app
