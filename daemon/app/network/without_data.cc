#include "daemon/app/network/without_data.h"

#include "absl/status/status.h"

namespace dfl::app {
namespace {

class WithoutData final : public LearnerFactory {
 public:
  explicit WithoutData(core::Participation participation)
      : participation_(participation) {}

  absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* /*spec*/,
      const core::DataSection& /*section*/) override {
    return Missing();
  }
  control::DataReport Report() override { return {}; }
  std::vector<std::string> Warnings(
      const core::InputScaling& /*scaling*/) override {
    return {};
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& /*spec*/, const core::DataContract& /*contract*/,
      int64_t /*batch_size*/) override {
    return Missing();
  }
  absl::Status ExportTorchScript(
      ports::Learner& /*learner*/, absl::Span<const float> /*parameters*/,
      absl::Span<const float> /*buffers*/,
      const std::function<absl::Status(absl::string_view)>& /*sink*/) override {
    return Missing();
  }
  std::string EngineOf(const ports::Learner& /*learner*/) const override {
    return "";
  }
  ThreadChoice Threads(const std::string& /*engine*/) const override {
    return {};
  }
  std::vector<std::string> Libraries() const override { return {}; }

 private:
  absl::Status Missing() const {
    return absl::FailedPreconditionError(
        participation_ == core::Participation::kObserve
            ? "this node only observes (participation: observe), and has no "
              "data to build a model for"
            : "this node has no data (participation: mix), and a model takes "
              "the form of its input from them; set data.train.paths to a few "
              "rows: no gradient is taken of them");
  }

  const core::Participation participation_;
};

}  // namespace

std::unique_ptr<LearnerFactory> MakeFactoryWithoutData(
    core::Participation participation) {
  return std::make_unique<WithoutData>(participation);
}

}  // namespace dfl::app
