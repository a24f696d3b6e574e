#include "daemon/sim/tasks/data_task.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::sim {
namespace {

class DataTask final : public Task {
 public:
  DataTask(const ProblemSpec& problem, const core::RunPlan& plan,
           std::unique_ptr<DataLearners> learners)
      : plan_(plan),
        eval_rows_(problem.eval_rows),
        learners_(std::move(learners)) {}

  // The learners that score: they share vectors of ours, and train nothing.
  // One, or where nodes standardise differently one for each.
  absl::Status MakeMeters(bool one_each) {
    const size_t count = one_each ? learners_->rows().size() : 1;
    for (size_t i = 0; i < count; ++i) {
      DFL_ASSIGN_OR_RETURN(
          std::unique_ptr<ports::Learner> meter,
          learners_->Build(static_cast<int64_t>(i), plan_.model,
                           DeriveSeed(plan_.seed, "scores")));
      if (i == 0) {
        parameters_.resize(static_cast<size_t>(meter->model().parameter_count));
        gradient_.resize(parameters_.size());
        buffers_.resize(static_cast<size_t>(meter->model().buffer_count));
      }
      DFL_RETURN_IF_ERROR(BindToOurs(*meter));
      meters_.push_back(std::move(meter));
    }
    return absl::OkStatus();
  }

  int64_t parameters() const override {
    return static_cast<int64_t>(parameters_.size());
  }
  int64_t buffers() const override {
    return static_cast<int64_t>(buffers_.size());
  }
  bool classifies() const override {
    return meters_.front()->data().classes > 0;
  }
  std::vector<int64_t> rows() const override {
    return {learners_->rows().begin(), learners_->rows().end()};
  }

  // After a crash it begins its rows anew, as dfld does.
  absl::StatusOr<std::unique_ptr<ports::Learner>> MakeLearner(
      int64_t i, uint64_t /*incarnation*/) override {
    const std::string& name = plan_.members[static_cast<size_t>(i)].node.name();
    return learners_->Build(i, plan_.model, DeriveSeed(plan_.seed, name));
  }

  absl::StatusOr<Score> ScoreForAll(const ModelView& model,
                                    const std::vector<bool>& members) override {
    Score sum;
    double accuracies = 0;
    double count = 0;
    for (size_t i = 0; i < meters_.size(); ++i) {
      if (meters_.size() > 1 && !members[i]) continue;
      DFL_ASSIGN_OR_RETURN(const Score score, Evaluate(*meters_[i], model));
      sum.loss += score.loss;
      accuracies += score.accuracy.value_or(0);
      ++count;
    }
    sum.loss /= count;
    if (classifies()) sum.accuracy = accuracies / count;
    return sum;
  }

  absl::StatusOr<Score> ScoreForNode(int64_t i,
                                     const ModelView& model) override {
    const size_t meter = std::min(static_cast<size_t>(i), meters_.size() - 1);
    return Evaluate(*meters_[meter], model);
  }

  // One pass over the node's rows in batches.
  absl::StatusOr<std::vector<double>> Gradient(
      int64_t i, const ModelView& model) override {
    DFL_ASSIGN_OR_RETURN(ports::Learner * walker, Walker(i));
    Put(model);
    const int64_t rows = learners_->rows()[static_cast<size_t>(i)];
    std::vector<double> mean(parameters_.size(), 0.0);
    ports::GradientRequest request;
    request.batch_size = kRowsAtOnce;
    for (int64_t seen = 0; seen < rows;) {
      DFL_ASSIGN_OR_RETURN(const ports::GradientResult batch,
                           walker->Gradient(request));
      const double share =
          static_cast<double>(batch.rows) / static_cast<double>(rows);
      for (size_t l = 0; l < mean.size(); ++l) mean[l] += share * gradient_[l];
      seen += batch.rows;
      ++request.step;
    }
    return mean;
  }

 private:
  // Bounds the memory that a large model takes for a batch.
  static constexpr int64_t kRowsAtOnce = 500;

  // What walks over the rows of node `i`: made at first use, and always between
  // two passes.
  absl::StatusOr<ports::Learner*> Walker(int64_t i) {
    std::unique_ptr<ports::Learner>& walker = walkers_[i];
    if (walker == nullptr) {
      DFL_ASSIGN_OR_RETURN(
          std::unique_ptr<ports::Learner> made,
          learners_->Build(i, plan_.model,
                           DeriveSeed(plan_.seed, "gradients")));
      DFL_RETURN_IF_ERROR(BindToOurs(*made));
      walker = std::move(made);
    }
    return walker.get();
  }

  absl::Status BindToOurs(ports::Learner& learner) {
    return learner.Bind(absl::MakeSpan(parameters_), absl::MakeSpan(gradient_),
                        absl::MakeSpan(buffers_));
  }

  void Put(const ModelView& model) {
    std::copy(model.parameters.begin(), model.parameters.end(),
              parameters_.begin());
    std::copy(model.buffers.begin(), model.buffers.end(), buffers_.begin());
  }

  absl::StatusOr<Score> Evaluate(ports::Learner& meter,
                                 const ModelView& model) {
    Put(model);
    DFL_ASSIGN_OR_RETURN(const ports::Evaluation evaluation,
                         meter.Evaluate(eval_rows_));
    Score score;
    score.loss = evaluation.loss;
    if (classifies()) score.accuracy = evaluation.accuracy;
    return score;
  }

  const core::RunPlan plan_;
  const int64_t eval_rows_;
  const std::unique_ptr<DataLearners> learners_;
  // Before the meters and walkers, which hold views.
  FlatVector parameters_;
  FlatVector gradient_;
  FlatVector buffers_;
  std::vector<std::unique_ptr<ports::Learner>> meters_;
  std::map<int64_t, std::unique_ptr<ports::Learner>> walkers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> MakeDataTask(
    const ProblemSpec& problem, const core::RunPlan& plan,
    const OpenDataLearners& open, absl::Span<const int64_t> flipped) {
  if (!open) {
    return absl::UnimplementedError(absl::StrCat(
        kProblemPath,
        ".kind: found data, and this program brings no learners for it; "
        "allowed: linear, logistic and softmax"));
  }
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<DataLearners> learners,
                       open(problem.data));
  for (const int64_t i : flipped) {
    DFL_RETURN_IF_ERROR(learners->FlipLabels(i));
  }
  auto task = std::make_unique<DataTask>(problem, plan, std::move(learners));
  const bool own_scales =
      problem.data.standardise.per != config::StandardiseSettings::Per::kNone;
  DFL_RETURN_IF_ERROR(task->MakeMeters(own_scales));
  return task;
}

}  // namespace dfl::sim
