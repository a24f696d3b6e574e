// A Trainer that takes virtual time: the learner's synchronous work happens at
// the end of a delay, in one event of the node's loop.
#ifndef DFL_SIMPORTS_SIM_TRAINER_H_
#define DFL_SIMPORTS_SIM_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"

namespace dfl::simports {

// Loop only. `loop` and `learner` must outlive it. Destroying it drops the
// pending call.
class SimTrainer final : public ports::Trainer {
 public:
  // How long a gradient takes.
  using GradientDelay =
      std::function<absl::Duration(const ports::GradientRequest&)>;

  SimTrainer(ports::Loop& loop, ports::Learner& learner,
             absl::Duration gradient_delay,
             absl::Duration evaluate_delay = absl::ZeroDuration());
  // A prediction takes as long as an evaluation.
  SimTrainer(ports::Loop& loop, ports::Learner& learner,
             GradientDelay gradient_delay, absl::Duration evaluate_delay);
  // The same, with a learner that lives as long as this.
  SimTrainer(ports::Loop& loop, std::unique_ptr<ports::Learner> learner,
             GradientDelay gradient_delay, absl::Duration evaluate_delay);
  ~SimTrainer() override;
  SimTrainer(const SimTrainer&) = delete;
  SimTrainer& operator=(const SimTrainer&) = delete;

  const ports::ModelInfo& model() const override { return learner_.model(); }
  const ports::DataInfo& data() const override { return learner_.data(); }
  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override;
  absl::Status Initialise(uint64_t seed) override;
  std::optional<ports::BatchPosition> position() const override {
    return learner_.position();
  }
  absl::Status GoTo(const ports::BatchPosition& position) override {
    return learner_.GoTo(position);
  }
  void Gradient(
      const ports::GradientRequest& request,
      std::function<void(absl::StatusOr<ports::GradientResult>)> done) override;
  void Predict(
      const ports::PredictRequest& request,
      std::function<void(absl::StatusOr<ports::Predictions>)> done) override;
  void Evaluate(
      int64_t max_rows,
      std::function<void(absl::StatusOr<ports::Evaluation>)> done) override;

  // The next calls fail with `status` instead of asking the learner; OK ends
  // that.
  void FailWith(absl::Status status) { failure_ = std::move(status); }

 private:
  // Calls `finish` after `delay`.
  template <typename Finish>
  void Start(absl::Duration delay, Finish finish);

  ports::Loop& loop_;
  const std::unique_ptr<ports::Learner> owned_;  // learner_, or null
  ports::Learner& learner_;
  GradientDelay gradient_delay_;
  absl::Duration evaluate_delay_;
  absl::Status failure_;
  ports::TimerId timer_ = 0;  // of the call under way
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_TRAINER_H_
