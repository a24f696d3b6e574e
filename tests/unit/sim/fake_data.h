// Data without files or LibTorch, for tests of what is learned from data.
#ifndef DFL_TESTS_UNIT_SIM_FAKE_DATA_H_
#define DFL_TESTS_UNIT_SIM_FAKE_DATA_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/sim/tasks/data_task.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {

// Learners of a plan's "svm" of two classes, as LibTorch's would be: rows of
// node i are a problem of its own, the test one for all.
class FakeDataLearners : public DataLearners {
 public:
  explicit FakeDataLearners(int64_t nodes, int64_t rows = 40)
      : rows_(nodes, rows) {
    simports::SoftmaxSpec spec;
    spec.nodes = nodes;
    spec.features = 5;
    spec.classes = 3;
    spec.rows_per_node = rows;
    simports::SoftmaxSet set = simports::SoftmaxExample(spec);
    for (auto& node : set.nodes) nodes_.push_back(std::move(node));
    test_ = simports::SoftmaxTest(std::move(set.test),
                                  std::move(set.test_labels), 3);
  }
  absl::Span<const int64_t> rows() const override { return rows_; }
  absl::Status FlipLabels(int64_t i) override {
    flipped_.insert(i);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      int64_t i, const core::ModelSpec& spec, uint64_t data_seed) override {
    if (spec.kind != "svm") {
      return absl::InvalidArgumentError("model.kind: allowed: svm");
    }
    simports::AnalyticLearnerOptions options;
    options.seed = data_seed;
    return std::make_unique<simports::AnalyticLearner>(
        options, nodes_[static_cast<size_t>(i)], test_);
  }
  const simports::Problem& problem(int64_t i) const {
    return *nodes_[static_cast<size_t>(i)];
  }

 private:
  std::vector<int64_t> rows_;
  std::vector<std::shared_ptr<const simports::Problem>> nodes_;
  simports::AnalyticTest test_;
  std::set<int64_t> flipped_;
};

inline std::string DataScenario(absl::string_view network = "",
                                absl::string_view model = "svm") {
  return absl::StrCat(
      "model: {kind: ", model, ", classes: 3}\n",
      absl::StrReplaceAll(
          SmallScenario(network, "{name: d-psgd, knobs: {eta: 0.3}}"),
          {{"{kind: linear, n: 20, rows: 30}",
            "{kind: data, train: {paths: [a, b]}, eval_rows: 100}"}}));
}

inline absl::StatusOr<std::unique_ptr<DataLearners>> OpenFake(
    const config::DataSettings& settings) {
  EXPECT_EQ(settings.partition.count, 8);
  EXPECT_EQ(settings.train_paths.size(), 2U);
  return std::make_unique<FakeDataLearners>(settings.partition.count);
}

}  // namespace dfl::sim

#endif  // DFL_TESTS_UNIT_SIM_FAKE_DATA_H_
