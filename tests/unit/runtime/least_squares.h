// Nodes on least squares in closed form, for tests of whole runs.
#ifndef DFL_TESTS_UNIT_RUNTIME_LEAST_SQUARES_H_
#define DFL_TESTS_UNIT_RUNTIME_LEAST_SQUARES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/problems.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {

inline constexpr int64_t kParameters = 20;
inline constexpr int64_t kRows = 40;

// Node problems of [PaME] Example 1, shared by nodes and naive recursions.
struct Problems {
  explicit Problems(int64_t nodes = 4, uint64_t seed = 3) {
    simports::ExampleSpec spec;
    spec.nodes = nodes;
    spec.n = kParameters;
    spec.rows_per_node = kRows;
    spec.seed = seed;
    simports::ProblemSet set = simports::LinearRegressionExample(spec);
    for (auto& problem : set.nodes) all.push_back(std::move(problem));
  }
  // f(w) = mean of f_i(w), over all rows.
  double Loss(absl::Span<const float> w) const {
    double sum = 0;
    for (const auto& problem : all) sum += problem->Loss(w);
    return sum / static_cast<double>(all.size());
  }
  // The least f, by gradient descent.
  double Least() const {
    std::vector<float> w(kParameters, 0.0F);
    std::vector<float> g(kParameters);
    for (int k = 0; k < 3000; ++k) {
      std::vector<double> sum(kParameters, 0.0);
      for (const auto& problem : all) {
        problem->Gradient(w, {}, absl::MakeSpan(g));
        for (size_t l = 0; l < sum.size(); ++l) sum[l] += g[l];
      }
      for (size_t l = 0; l < sum.size(); ++l) {
        w[l] -=
            static_cast<float>(0.2 * sum[l] / static_cast<double>(all.size()));
      }
    }
    return Loss(w);
  }
  std::vector<std::shared_ptr<const simports::Problem>> all;
};

// A node for each of `problems`, which must outlive it; `test` is what each is
// evaluated on.
inline ClusterOptions LeastSquaresCluster(const Problems& problems,
                                          uint64_t seed,
                                          simports::AnalyticTest test = {}) {
  ClusterOptions options;
  options.nodes = static_cast<int64_t>(problems.all.size());
  options.seed = seed;
  options.learner = [&problems, seed, test](int64_t i) {
    simports::AnalyticLearnerOptions learner;
    learner.kind = "least-squares";
    learner.seed = DeriveSeed(seed, "learner", i);
    return std::make_unique<simports::AnalyticLearner>(learner, problems.all[i],
                                                       test);
  };
  return options;
}

// Whole passes, so that gradients have no noise.
inline core::RunPlan FullBatches(core::RunPlan plan) {
  plan.batch_size = kRows;
  return plan;
}

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_LEAST_SQUARES_H_
