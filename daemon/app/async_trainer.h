// ports::Trainer on a thread: wraps a synchronous learner, so that the node's
// loop never waits for a gradient.
#ifndef DFL_APP_ASYNC_TRAINER_H_
#define DFL_APP_ASYNC_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/app/service/frozen_watch.h"
#include "daemon/app/worker.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"

namespace dfl::app {

// Used on the loop only. The destructor waits for the call that is running.
class AsyncTrainer final : public ports::Trainer {
 public:
  // `loop` must outlive it.
  AsyncTrainer(ports::Loop& loop, std::unique_ptr<ports::Learner> learner);
  ~AsyncTrainer() override;

  const ports::ModelInfo& model() const override { return learner_->model(); }
  const ports::DataInfo& data() const override { return learner_->data(); }

  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override;
  absl::Status Initialise(uint64_t seed) override;
  std::optional<ports::BatchPosition> position() const override {
    return *reached_;
  }
  absl::Status GoTo(const ports::BatchPosition& position) override;
  void Gradient(
      const ports::GradientRequest& request,
      std::function<void(absl::StatusOr<ports::GradientResult>)> done) override;
  void Predict(
      const ports::PredictRequest& request,
      std::function<void(absl::StatusOr<ports::Predictions>)> done) override;
  void Evaluate(
      int64_t max_rows,
      std::function<void(absl::StatusOr<ports::Evaluation>)> done) override;

  // Runs `work` on the training thread, between its calls, then `done` on the
  // loop.
  void RunWithLearner(std::function<void(ports::Learner&)> work,
                      std::function<void()> done);

  // As FrozenWatch::Look, of the call under way.
  std::optional<FrozenWatch::Frozen> LookIfFrozen(
      absl::Duration patience) const {
    return watch_->Look(loop_.Now(), patience);
  }

 private:
  // Runs `work` on the training thread, then `done` on the loop, under watch.
  void RunWatched(double steps, bool is_gradient, std::function<void()> work,
                  std::function<void()> done);

  ports::Loop& loop_;
  std::unique_ptr<ports::Learner> learner_;
  int64_t batch_size_ = 1;  // of the last gradient
  // Calls that end when this is gone write it all the same.
  std::shared_ptr<FrozenWatch> watch_ = std::make_shared<FrozenWatch>();
  // position(), written in the same way.
  std::shared_ptr<std::optional<ports::BatchPosition>> reached_;
  Worker thread_;  // last: stopped before the learner goes
};

}  // namespace dfl::app

#endif  // DFL_APP_ASYNC_TRAINER_H_
