// Drives the learner: one gradient or prediction at a time, on vectors of the
// model or on copies of them, and what is to be done when it fails.
//
// A call outlives its algorithm when that is restarted meanwhile: BeginEpoch.
// What comes of it is dropped, and what the new algorithm asked for in the
// meantime starts then.
//
// Degraded. A node whose gradients fail does not train but mixes and answers
// on, at the pace it had, so that nobody waits for it: a gradient of zero comes
// after the time that the last one took, and training is tried again after
// `degraded_retry`.
//
// Loop only.
#ifndef DFL_RUNTIME_LEARNER_DRIVER_H_
#define DFL_RUNTIME_LEARNER_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/flat_model.h"

namespace dfl::runtime {

class LearnerDriver {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual int64_t BatchSize() const = 0;
    // Whether the node is degraded: then a gradient is tried only after
    // Retreat's pause.
    virtual bool Degraded() const = 0;
    // A call has ended; comes before what came of it.
    virtual void OnLearnerFree() = 0;
    // Whether what came of a gradient is to be used. An error counts as the
    // learner's.
    virtual absl::Status Judge(const ports::GradientResult& result) = 0;
    // What came of ComputeGradient, in the present epoch. After an error the
    // buffers are as before, and it is the listener that calls Retreat,
    // PassOver or Decline.
    virtual void OnGradient(absl::StatusOr<ports::GradientResult> result) = 0;
    // The gradient of a degraded node, which is zero.
    virtual void OnStoodStill() = 0;
    virtual void OnPredictions(absl::StatusOr<ports::Predictions> result) = 0;
  };

  // All must outlive it.
  LearnerDriver(ports::Loop& loop, FlatModel& model, Listener& listener,
                absl::Duration degraded_retry)
      : loop_(loop),
        model_(model),
        listener_(listener),
        degraded_retry_(degraded_retry) {}

  // null: none yet.
  const ports::Trainer* trainer() const { return trainer_.get(); }
  ports::Trainer* trainer() { return trainer_.get(); }

  // Replaces the trainer, gives the model its lengths and binds it. Returns
  // what Trainer::Bind says. The trainer is there in any case; one that could
  // not be bound is never called, and every call here ends with that error.
  absl::Status Install(std::unique_ptr<ports::Trainer> trainer);
  // Replaces the trainer by one of the same model on other rows. The model and
  // the count of gradients stay. Mini-batches go on from where they are if
  // there are as many rows, and with the next pass if not. Not while a call is
  // under way.
  // Errors: as Trainer::Bind; then the present one stays.
  absl::Status Renew(std::unique_ptr<ports::Trainer> trainer);
  const absl::Status& bound() const { return bound_; }
  // Writes the seeded initialisation into the model. Errors: as Trainer's.
  absl::Status Initialise(uint64_t seed);
  // From here on the learner has vectors of its own, so that the model may move
  // during a gradient. The model's vectors are others afterwards.
  void ComputeOnCopy();

  // An algorithm begins anew.
  void BeginEpoch() { ++epoch_; }
  // What waits for the learner is not wanted any more.
  void DropWaiting();
  // Goes on after `gradients` of them, with the mini-batches from `position`.
  // Not while a call is under way.
  // Errors: as Learner::GoTo; then the mini-batches go on from where they are.
  absl::Status GoTo(int64_t gradients,
                    const std::optional<ports::BatchPosition>& position);
  // A new run: its mini-batches begin with the first.
  void ForgetGradients() { gradients_ = 0; }

  void ComputeGradient(const core::ComputeGradient& action);
  void Predict(const core::Predict& action);
  // Evaluates the model on `rows` test rows (0: all). `done` is called later.
  void Evaluate(int64_t rows,
                std::function<void(absl::StatusOr<ports::Evaluation>)> done);
  // A gradient has failed: a zero gradient comes, and training is tried again
  // later.
  void Retreat();
  // The same, but the gradient of the next mini-batch is tried at once.
  void PassOver();
  // No gradient is tried for the one that is asked for next; a zero gradient
  // comes at once, or after `pause`.
  void Decline(absl::Duration pause = absl::ZeroDuration());

  // A gradient or prediction is under way.
  bool busy() const { return running_ != 0; }
  // What the last gradient took that came to something.
  absl::Duration took() const { return took_; }
  // How many came to something, of this run.
  int64_t gradients() const { return gradients_; }

 private:
  bool computes_on_copy() const { return !compute_parameters_.empty(); }
  // The model, or `at` when not empty, to the learner's vectors.
  void CopyToLearner(absl::Span<const float> at = {});
  void OnGradient(uint64_t call, uint64_t epoch,
                  absl::StatusOr<ports::GradientResult> result);
  void OnPredictions(uint64_t call, uint64_t epoch,
                     absl::StatusOr<ports::Predictions> result);
  // Takes back what a gradient that came to nothing left in the buffers.
  void Undo();
  // Adds to the model's buffers what the gradient changed in its copy of them.
  void MergeBuffers();
  // The call ended. Returns whether what came of it is still wanted.
  bool Ended(uint64_t call, uint64_t epoch);
  void StandStill();
  // Does `work` from the loop, unless this object is gone by then.
  void Later(std::function<void()> work);

  ports::Loop& loop_;
  FlatModel& model_;
  Listener& listener_;
  const absl::Duration degraded_retry_;
  // What the trainer is bound to when it computes on a copy; else empty. They
  // outlive the trainer.
  FlatVector compute_parameters_;
  FlatVector compute_buffers_;
  FlatVector copied_buffers_;     // as they were when the gradient began
  core::ComputeGradient wanted_;  // the gradient that was asked for last
  std::unique_ptr<ports::Trainer> trainer_;
  absl::Status bound_;  // of trainer_
  uint64_t epoch_ = 0;
  int64_t gradients_ = 0;  // seeds dropout
  uint64_t last_call_ = 0;
  uint64_t running_ = 0;  // the call that is under way; 0: none
  // Asked for while a call of an algorithm that is gone was under way.
  std::optional<core::ComputeGradient> next_gradient_;
  std::optional<core::Predict> next_prediction_;
  absl::Time began_;
  absl::Duration took_ = absl::Milliseconds(100);  // the last one
  absl::Time retry_at_;  // degraded: nothing is tried before
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LEARNER_DRIVER_H_
