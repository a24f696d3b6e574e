// What a simulated network learns: the nodes' learners, and how their models
// are measured. There is one object for the whole network, so what the nodes
// share (a data set) is in memory once.
//
// Implementations: analytic_task.h (generated problems) and data_task.h (files
// and the plan's model).
#ifndef DFL_SIM_TASKS_TASK_H_
#define DFL_SIM_TASKS_TASK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/ports/learner.h"

namespace dfl::sim {

struct Score {
  double loss = 0;
  std::optional<double> accuracy;  // in [0, 1]; none where there are no classes
};

// A model's values, borrowed for a call.
struct ModelView {
  absl::Span<const float> parameters;  // [n]
  absl::Span<const float> buffers;     // [b]
};

// Thread-compatible.
class Task {
 public:
  virtual ~Task() = default;

  virtual int64_t parameters() const = 0;         // n
  virtual int64_t buffers() const = 0;            // b
  virtual std::vector<int64_t> rows() const = 0;  // of each node
  // Whether there is an accuracy.
  virtual bool classifies() const = 0;

  // Makes the learner of node `i` for one start; `incarnation` differs between
  // starts.
  // Errors: those of the learner.
  virtual absl::StatusOr<std::unique_ptr<ports::Learner>> MakeLearner(
      int64_t i, uint64_t incarnation) = 0;

  // The score of one model for all nodes: f(w), where f is the mean of the f_i
  // of `members` (by place, at least one).
  // Errors: those of the learner.
  virtual absl::StatusOr<Score> ScoreForAll(
      const ModelView& model, const std::vector<bool>& members) = 0;
  // The score of node i's own model: f_i(w).
  virtual absl::StatusOr<Score> ScoreForNode(int64_t i,
                                             const ModelView& model) = 0;

  // grad f_i(w) over all training rows of node `i`, [n], with dropout and batch
  // statistics as in training.
  // Errors: those of the learner.
  virtual absl::StatusOr<std::vector<double>> Gradient(
      int64_t i, const ModelView& model) = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_TASKS_TASK_H_
