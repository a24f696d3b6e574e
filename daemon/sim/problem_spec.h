// What the nodes of a scenario learn: network.problem, and reading it.
#ifndef DFL_SIM_PROBLEM_SPEC_H_
#define DFL_SIM_PROBLEM_SPEC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::sim {

struct ProblemSpec {
  enum class Kind {
    kLinear,    // [PaME] Example 1
    kLogistic,  // [PaME] Example 2
    kSoftmax,   // simports::SoftmaxExample
    kData,      // files, and the plan's own model
  };
  Kind kind = Kind::kLinear;

  // All but kData: each node has rows of its own, made from a seed.
  int64_t n = 100;    // numbers in a row, >= 1
  int64_t rows = 50;  // of each node, >= 1
  uint64_t seed = 0;  // of the data; 0: the run's seed
  // kSoftmax.
  int64_t classes = 10;     // >= 2
  double skew = 0;          // Dirichlet concentration of labels; 0: no skew
  int64_t test_rows = 500;  // >= 1

  // kData: as a daemon's section `data`, with a part for each node. Its
  // partition.seed is the run's unless it is written.
  config::DataSettings data;
  bool partition_seed_written = false;
  // The number of test rows for a row of metrics; 0: all.
  int64_t eval_rows = 0;
};

inline constexpr char kProblemPath[] = "network.problem";

// Reads the section `problem` of `network` into `problem`, and notes mistakes
// in `yaml`. Sets the model of `plan`, whose members are known: a generated
// problem has a model of its own, which the plan's section `model` may repeat.
// Errors: INVALID_ARGUMENT, the mistakes in the keys of a daemon's `data`.
absl::Status ReadProblem(const config::YamlNode& root,
                         const config::YamlNode& network,
                         config::YamlReader& yaml, core::RunPlan& plan,
                         ProblemSpec& problem);

}  // namespace dfl::sim

#endif  // DFL_SIM_PROBLEM_SPEC_H_
