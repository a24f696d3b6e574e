// The learners on the rows that the node has now. Where its data files have
// changed, one factory takes the place of another; a call that is under way
// ends with the one that it began with, and then the rows before go.
#ifndef DFL_APP_NEW_DATA_RENEWABLE_LEARNERS_H_
#define DFL_APP_NEW_DATA_RENEWABLE_LEARNERS_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "daemon/app/learner_factory.h"

namespace dfl::app {

// As thread-safe as the factories that it stands for; Use is thread-safe.
class RenewableLearners final : public LearnerFactory {
 public:
  explicit RenewableLearners(std::shared_ptr<LearnerFactory> learners)
      : learners_(std::move(learners)) {}

  // All calls from here on are to `learners`.
  void Use(std::shared_ptr<LearnerFactory> learners)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      learners_.swap(learners);
    }
    // The rows before go here, after the lock is gone.
  }

  absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* spec, const core::DataSection& section) override {
    return Now()->Offer(spec, section);
  }
  control::DataReport Report() override { return Now()->Report(); }
  std::vector<std::string> Warnings(
      const core::InputScaling& scaling) override {
    return Now()->Warnings(scaling);
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec, const core::DataContract& contract,
      int64_t batch_size) override {
    return Now()->Build(spec, contract, batch_size);
  }
  absl::Status ExportTorchScript(
      ports::Learner& learner, absl::Span<const float> parameters,
      absl::Span<const float> buffers,
      const std::function<absl::Status(absl::string_view)>& sink) override {
    return Now()->ExportTorchScript(learner, parameters, buffers, sink);
  }
  std::string EngineOf(const ports::Learner& learner) const override {
    return Now()->EngineOf(learner);
  }
  ThreadChoice Threads(const std::string& engine) const override {
    return Now()->Threads(engine);
  }
  std::vector<std::string> Libraries() const override {
    return Now()->Libraries();
  }

 private:
  std::shared_ptr<LearnerFactory> Now() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return learners_;
  }

  mutable absl::Mutex mutex_;
  std::shared_ptr<LearnerFactory> learners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_NEW_DATA_RENEWABLE_LEARNERS_H_
