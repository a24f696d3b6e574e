#include "daemon/sim/tasks/analytic_task.h"

#include <string>
#include <utility>

#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"

namespace dfl::sim {
namespace {

class AnalyticTask final : public Task {
 public:
  // `test` is of all nodes; without classes each node is tested on its own
  // rows.
  AnalyticTask(std::string kind,
               std::vector<std::shared_ptr<const simports::Problem>> nodes,
               simports::AnalyticTest test)
      : kind_(std::move(kind)),
        nodes_(std::move(nodes)),
        test_(std::move(test)) {}

  int64_t parameters() const override { return nodes_.front()->n(); }
  int64_t buffers() const override { return 0; }
  bool classifies() const override { return test_.classes > 0; }
  std::vector<int64_t> rows() const override {
    std::vector<int64_t> rows;
    rows.reserve(nodes_.size());
    for (const auto& node : nodes_) rows.push_back(node->rows());
    return rows;
  }

  absl::StatusOr<std::unique_ptr<ports::Learner>> MakeLearner(
      int64_t i, uint64_t incarnation) override {
    simports::AnalyticLearnerOptions options;
    options.kind = kind_;
    options.seed = incarnation;
    const auto& problem = nodes_[static_cast<size_t>(i)];
    simports::AnalyticTest test = test_;
    if (!classifies()) test.problem = problem;
    return std::make_unique<simports::AnalyticLearner>(options, problem,
                                                       std::move(test));
  }

  absl::StatusOr<Score> ScoreForAll(const ModelView& model,
                                    const std::vector<bool>& members) override {
    Score score;
    int64_t count = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!members[i]) continue;
      score.loss += nodes_[i]->Loss(model.parameters);
      ++count;
    }
    score.loss /= static_cast<double>(count);
    score.accuracy = Accuracy(model.parameters);
    return score;
  }

  absl::StatusOr<Score> ScoreForNode(int64_t i,
                                     const ModelView& model) override {
    Score score;
    score.loss = nodes_[static_cast<size_t>(i)]->Loss(model.parameters);
    score.accuracy = Accuracy(model.parameters);
    return score;
  }

  absl::StatusOr<std::vector<double>> Gradient(
      int64_t i, const ModelView& model) override {
    std::vector<float> gradient(model.parameters.size());
    nodes_[static_cast<size_t>(i)]->Gradient(model.parameters, {},
                                             absl::MakeSpan(gradient));
    return std::vector<double>(gradient.begin(), gradient.end());
  }

 private:
  std::optional<double> Accuracy(absl::Span<const float> w) const {
    if (!classifies()) return std::nullopt;
    int64_t hits = 0;
    const auto rows = static_cast<int64_t>(test_.labels.size());
    for (int64_t row = 0; row < rows; ++row) {
      if (test_.predict(w, row) == test_.labels[static_cast<size_t>(row)]) {
        ++hits;
      }
    }
    return static_cast<double>(hits) / static_cast<double>(rows);
  }

  const std::string kind_;
  const std::vector<std::shared_ptr<const simports::Problem>> nodes_;
  const simports::AnalyticTest test_;
};

}  // namespace

std::unique_ptr<Task> MakeAnalyticTask(const ProblemSpec& problem,
                                       const core::RunPlan& plan,
                                       absl::Span<const int64_t> flipped) {
  DFL_CHECK(problem.kind != ProblemSpec::Kind::kData);
  const auto count = static_cast<int64_t>(plan.members.size());
  const uint64_t seed =
      problem.seed != 0 ? problem.seed : DeriveSeed(plan.seed, "data");
  std::vector<std::shared_ptr<const simports::Problem>> nodes;
  simports::AnalyticTest test;
  if (problem.kind == ProblemSpec::Kind::kSoftmax) {
    simports::SoftmaxSpec spec;
    spec.nodes = count;
    spec.features = problem.n;
    spec.classes = problem.classes;
    spec.rows_per_node = problem.rows;
    spec.test_rows = problem.test_rows;
    spec.skew = problem.skew;
    spec.seed = seed;
    spec.flipped.assign(flipped.begin(), flipped.end());
    simports::SoftmaxSet set = simports::SoftmaxExample(spec);
    for (auto& node : set.nodes) nodes.push_back(std::move(node));
    test = simports::SoftmaxTest(std::move(set.test),
                                 std::move(set.test_labels), problem.classes);
  } else {
    simports::ExampleSpec spec;
    spec.nodes = count;
    spec.n = problem.n;
    spec.rows_per_node = problem.rows;
    spec.seed = seed;
    simports::ProblemSet set = problem.kind == ProblemSpec::Kind::kLinear
                                   ? simports::LinearRegressionExample(spec)
                                   : simports::LogisticRegressionExample(spec);
    for (auto& node : set.nodes) nodes.push_back(std::move(node));
  }
  return std::make_unique<AnalyticTask>(plan.model.kind, std::move(nodes),
                                        std::move(test));
}

}  // namespace dfl::sim
