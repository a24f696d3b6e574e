// Training: what the learner does for the algorithm, its results, and the
// phase *degraded* of a node whose gradients fail (learner_driver.h).
//
// Loop only.
#ifndef DFL_RUNTIME_TRAINING_H_
#define DFL_RUNTIME_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/guards/divergence.h"
#include "daemon/runtime/guards/training_health.h"
#include "daemon/runtime/learner_driver.h"
#include "daemon/runtime/own_state.h"

namespace dfl::runtime {

class Training : private LearnerDriver::Listener {
 public:
  // `degraded_retry`: between two tries after training failed. All must outlive
  // it.
  Training(OwnState& own, ports::Loop& loop, ports::EventSink& events,
           absl::Duration degraded_retry);

  LearnerDriver& learner() { return learner_; }
  const LearnerDriver& learner() const { return learner_; }
  // Why training, predictions or an evaluation failed, the first of these that
  // has not worked since; "": all is fine.
  const std::string& last_error() const;

  // Installs the trainer of a new run. One that cannot be bound is reported;
  // its gradients will fail.
  void Install(std::unique_ptr<ports::Trainer> trainer);
  // The same model is trained on other rows from here on, which is reported:
  // LearnerDriver::Renew. An error is reported, and the present rows stay.
  void Renew(std::unique_ptr<ports::Trainer> trainer);
  // Gives the model its seeded start values. Errors are reported.
  absl::Status Initialise();
  // The steps of an epoch, >= 1; 1 before there is a trainer.
  int64_t BatchesPerPass() const;
  int64_t train_rows() const {  // 0 before there is a trainer
    return learner_.trainer() ? learner_.trainer()->data().train_rows : 0;
  }
  // A new run begins.
  void BeginRun();
  // The model that is there is trained from here on; failures before and what
  // was usual for another model are forgotten.
  void BeginTraining();
  const TrainingHealth& health() const { return health_; }
  // Reports that the learner failed.
  void Fail(const absl::Status& status);
  // An evaluation ended so; an error is reported.
  void OnEvaluation(const absl::Status& status);

  // What the algorithm wants.
  void Do(const core::ComputeGradient& action);
  void Do(const core::Predict& action) { learner_.Predict(action); }
  void Do(const core::StepDone& action);

 private:
  // LearnerDriver::Listener
  int64_t BatchSize() const override { return own_.run.plan().batch_size; }
  bool Degraded() const override {
    return own_.phases.Is(ports::Phase::kDegraded);
  }
  void OnLearnerFree() override;
  absl::Status Judge(const ports::GradientResult& result) override;
  void OnGradient(absl::StatusOr<ports::GradientResult> result) override;
  void OnStoodStill() override;
  // A gradient came to nothing.
  void OnFailure(const absl::Status& status);
  // The run ends as failed at the next boundary, for `why`.
  void EndAsFailed(const std::string& why);
  // Looks at the model, now and then.
  void CheckParameters();
  void OnPredictions(absl::StatusOr<ports::Predictions> result) override;
  // Predictions ended so.
  void OnPredicted(const absl::Status& status);

  OwnState& own_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  LearnerDriver learner_;
  TrainingHealth health_;
  Divergence divergence_;
  absl::Time checked_ = absl::InfinitePast();  // when the parameters were
  // Of the last of each; "": it worked.
  std::string training_error_;
  std::string prediction_error_;
  std::string evaluation_error_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TRAINING_H_
