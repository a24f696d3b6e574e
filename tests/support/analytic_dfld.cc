// dfld, but that it learns the generated problem of a scenario, the file in
// DFL_SCENARIO, as dflsim's node of the same name does: with the same rows and
// mini-batches. For tests that lay a real run beside a simulated one.
//
// Its gradients take microseconds, so it would be through before the next node
// has been told to start. So the first one waits until somebody has opened the
// FIFO DFL_GATE for writing and closed it again. Reading the data waits in the
// same way at DFL_START_GATE.
//
// DFL_DIFFERS names a field of the data contract, e.g. "classes": in this field
// its contract is not that of the others.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/daemon.h"
#include "daemon/app/learner_factory.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "daemon/sim/tasks/analytic_task.h"

namespace dfl {
namespace {

void WaitAtGate(const char* variable) {
  const char* gate = std::getenv(variable);
  if (gate == nullptr) return;
  std::ifstream fifo(gate);
  fifo.get();  // nothing is ever written
}

// The contract of a scenario is of its problem alone; here it has a value in
// each field.
void ChangeContract(core::DataContract& contract) {
  contract.classes = {"cat", "dog", "fox"};
  contract.features = {"height", "weight"};
  contract.shape = {2};
  const char* set = std::getenv("DFL_DIFFERS");
  const std::string field = set == nullptr ? "" : set;
  if (field == "task") contract.task = core::Task::kRegression;
  if (field == "classes") contract.classes = {"cat", "fox"};
  if (field == "features") contract.features = {"weight", "height"};
  if (field == "shape") contract.shape = {3};
  if (field == "input") contract.input.divide = 255;
  if (field == "loss") contract.loss = "another";
  if (field == "model") contract.model = std::string(64, '7');
}

class GatedLearner final : public ports::Learner {
 public:
  explicit GatedLearner(std::unique_ptr<ports::Learner> learner)
      : learner_(std::move(learner)), model_(learner_->model()) {
    ChangeContract(model_.contract);
  }

  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return learner_->data(); }
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override {
    return learner_->Bind(parameters, gradient, buffers);
  }
  absl::Status Initialise(uint64_t seed) override {
    return learner_->Initialise(seed);
  }
  std::optional<ports::BatchPosition> position() const override {
    return learner_->position();
  }
  absl::Status GoTo(const ports::BatchPosition& position) override {
    return learner_->GoTo(position);
  }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    if (!std::exchange(passed_, true)) WaitAtGate("DFL_GATE");
    return learner_->Gradient(request);
  }
  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override {
    return learner_->Predict(request);
  }
  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override {
    return learner_->Evaluate(max_rows);
  }

 private:
  const std::unique_ptr<ports::Learner> learner_;
  ports::ModelInfo model_;
  bool passed_ = false;
};

class AnalyticLearnerFactory final : public app::LearnerFactory {
 public:
  AnalyticLearnerFactory(std::unique_ptr<sim::Task> task, int64_t place,
                         uint64_t incarnation)
      : task_(std::move(task)), place_(place), incarnation_(incarnation) {}

  absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* spec,
      const core::DataSection& /*section*/) override {
    core::DataOffer offer;
    offer.shape = {1};
    if (spec != nullptr && spec->classes == 0) {
      offer.task = core::Task::kRegression;
    } else {
      const int64_t classes = spec == nullptr ? 2 : spec->classes;
      for (int64_t i = 0; i < classes; ++i) {
        offer.classes.push_back(absl::StrCat(i));
      }
    }
    return offer;
  }
  control::DataReport Report() override { return {}; }
  std::vector<std::string> Warnings(
      const core::InputScaling& /*scaling*/) override {
    return {};
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& /*spec*/, const core::DataContract& /*contract*/,
      int64_t /*batch_size*/) override {
    DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::Learner> learner,
                         task_->MakeLearner(place_, incarnation_));
    return std::make_unique<GatedLearner>(std::move(learner));
  }
  absl::Status ExportTorchScript(
      ports::Learner& /*learner*/, absl::Span<const float> /*parameters*/,
      absl::Span<const float> /*buffers*/,
      const std::function<absl::Status(absl::string_view)>& /*sink*/) override {
    return absl::InvalidArgumentError("an analytic model has no TorchScript");
  }
  std::string EngineOf(const ports::Learner& /*learner*/) const override {
    return "";
  }
  app::ThreadChoice Threads(const std::string& /*engine*/) const override {
    return {};
  }
  std::vector<std::string> Libraries() const override { return {}; }

 private:
  const std::unique_ptr<sim::Task> task_;
  const int64_t place_;
  const uint64_t incarnation_;
};

absl::StatusOr<std::unique_ptr<app::LearnerFactory>> OpenAnalytic(
    const config::NodeSettings& settings) {
  WaitAtGate("DFL_START_GATE");
  const char* file = std::getenv("DFL_SCENARIO");
  if (file == nullptr) {
    return absl::InvalidArgumentError("DFL_SCENARIO names no scenario");
  }
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(file, config::kMaxPlanBytes));
  DFL_ASSIGN_OR_RETURN(const sim::Scenario scenario,
                       sim::ParseScenario(text, file));
  const std::vector<core::MemberSpec>& members = scenario.plan.members;
  const auto self = std::find_if(
      members.begin(), members.end(),
      [&](const auto& member) { return member.node.name() == settings.name; });
  if (self == members.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has no node ", settings.name));
  }
  return std::make_unique<AnalyticLearnerFactory>(
      sim::MakeAnalyticTask(scenario.problem, scenario.plan),
      self - members.begin(),
      sim::IncarnationOf(scenario.plan, settings.name, 1));
}

}  // namespace
}  // namespace dfl

int main(int argc, char** argv) {
  return dfl::app::DaemonMain(argc, argv, dfl::OpenAnalytic);
}
