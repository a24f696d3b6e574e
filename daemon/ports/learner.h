// Ports: what trains. A Learner is synchronous and threadless; a Trainer is the
// same, asynchronous, for the node's loop.
//
// Implementations of Learner: learner/torch_learner.h (LibTorch) and
// simports/analytic_learner.h (the papers' problems, and a fake with zero
// gradients). Implementations of Trainer: app/async_trainer.h (a thread) and
// simports/sim_trainer.h (a virtual delay).
#ifndef DFL_PORTS_LEARNER_H_
#define DFL_PORTS_LEARNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/vector/model_values.h"

namespace dfl::ports {

// One named tensor inside a flat vector, row-major, float32.
struct TensorInfo {
  std::string name;            // the module's own, e.g. "conv1.weight"
  std::vector<int64_t> shape;  // may be empty: a scalar
  int64_t offset = 0;          // of its first value in the flat vector
  int64_t size = 0;            // number of values
};

// A tensor that is neither trained nor mixed: a frozen parameter, an integer,
// or a constant of a frozen part. With the parameters and the buffers these
// make the whole state of a model.
struct FixedTensor {
  std::string name;
  std::string dtype;  // as safetensors files call it: "F32", "I64", "BOOL", ...
  std::vector<int64_t> shape;  // may be empty: a scalar
  int64_t bytes = 0;
  // A copy of its values as they are now, row-major. Call it where the
  // learner's methods may be called, one at a time with them.
  std::function<std::string()> read;
};

struct ModelInfo {
  std::string kind;                    // e.g. "cnn"
  std::vector<TensorInfo> parameters;  // trained, in flat order
  std::vector<TensorInfo> buffers;     // floating-point, untrained
  int64_t parameter_count = 0;         // n
  int64_t buffer_count = 0;            // b
  std::vector<FixedTensor> others;
  // Further names of tied tensors, and the name above that each stands for.
  std::map<std::string, std::string> aliases;
  // The fewest rows a mini-batch has: 2 where the model normalises by the
  // batch. A last batch with fewer is joined to the one before.
  int64_t min_batch_rows = 1;
  // What works but is probably not meant, a sentence each.
  std::vector<std::string> warnings;
  // What its inputs and outputs mean, and its identity. Nodes whose contracts
  // differ never mix.
  core::DataContract contract;
  // The contract's input with this node's own mean and std where each node has
  // its own: how a stranger feeds the model.
  core::InputScaling scaling;
};

struct DataInfo {
  int64_t train_rows = 0;
  int64_t test_rows = 0;  // 0: nothing to evaluate on
  int64_t classes = 0;    // 0: regression
  int64_t bytes = 0;      // that the files of both take in memory; 0: not told
};

struct GradientRequest {
  // Grows from mini-batch to mini-batch on this node: seeds dropout.
  int64_t step = 0;
  // Rows of the mini-batch, >= 1. The last of a pass may be shorter, or, where
  // the model needs it (ModelInfo::min_batch_rows), longer.
  int64_t batch_size = 32;
  // The mini-batch of the gradient before once more, instead of the next one. A
  // batch that gave no gradient is not taken again: the next one is.
  bool same_batch = false;
};

struct GradientResult {
  double loss = 0;   // mean over the mini-batch, regularisation included
  int64_t rows = 0;  // of the mini-batch
};

struct PredictRequest {
  // As GradientRequest's.
  int64_t batch_size = 32;
  // Whose predictions are wanted beside the bound model's; [n] and [b] values
  // each. Never null.
  std::shared_ptr<const std::vector<core::ModelValues>> models;
};

// Where a learner stands in its rows: what its next mini-batches depend on.
struct BatchPosition {
  uint64_t seed = 0;  // of the order
  int64_t rows = 0;   // for so many only
  uint64_t pass = 0;  // passes completed
  int64_t row = 0;    // rows of this pass already given

  friend bool operator==(const BatchPosition& a, const BatchPosition& b) {
    return a.seed == b.seed && a.rows == b.rows && a.pass == b.pass &&
           a.row == b.row;
  }
};

struct Predictions {
  int64_t rows = 0;  // of the mini-batch
  // Softmax of the outputs, [rows x classes], of the bound model first.
  std::vector<std::vector<double>> probabilities;
};

struct Evaluation {
  double loss = 0;
  // Classification, both in [0, 1]; macro F1 is the mean over classes of F1.
  std::optional<double> accuracy;
  std::optional<double> macro_f1;
  // Regression: mean absolute error, and 1 - (residual by total sum of
  // squares), which a constant target leaves without a value.
  std::optional<double> mae;
  std::optional<double> r2;
  int64_t rows = 0;  // evaluated
};

// Thread-compatible: one call at a time, from any thread.
class Learner {
 public:
  virtual ~Learner() = default;

  virtual const ModelInfo& model() const = 0;
  virtual const DataInfo& data() const = 0;

  // Gives the learner the node's flat buffers: `parameters` [n], `gradient`
  // [n], `buffers` [b]. From here on the module's tensors are views of them.
  // Call once, before anything below; the memory must outlive the learner.
  // After an error nothing is bound, and it may be called again.
  // Errors: INVALID_ARGUMENT for other sizes; FAILED_PRECONDITION when it is
  // bound; RESOURCE_EXHAUSTED: memory; INTERNAL. What is below gives
  // FAILED_PRECONDITION as long as nothing is bound.
  virtual absl::Status Bind(absl::Span<float> parameters,
                            absl::Span<float> gradient,
                            absl::Span<float> buffers) = 0;

  // Writes the seeded initialisation into the bound parameters and buffers: the
  // same bits on every node, whatever its LibTorch and processor.
  virtual absl::Status Initialise(uint64_t seed) = 0;

  // Draws the next mini-batch (or takes the last again) and writes the gradient
  // of its mean loss at the bound parameters into the bound gradient. An error
  // leaves the buffers as they were and the gradient 0; the batch is passed
  // over.
  // Errors: DATA_LOSS when this batch gives no gradient, since the model fails
  // at it, or since the loss, the gradient or a buffer is not finite; the text
  // says which, and names the rows. RESOURCE_EXHAUSTED: memory.
  virtual absl::StatusOr<GradientResult> Gradient(
      const GradientRequest& request) = 0;

  // Draws the next mini-batch and predicts it, without dropout, with the bound
  // model and with each of `request.models`. A single output f for two classes
  // counts as the logits 0 and f. What is bound is as it was.
  // Errors: FAILED_PRECONDITION when the model tells no classes;
  // INVALID_ARGUMENT for models of other lengths; RESOURCE_EXHAUSTED; INTERNAL
  // or INVALID_ARGUMENT when the model fails.
  virtual absl::StatusOr<Predictions> Predict(
      const PredictRequest& request) = 0;

  // Loss and scores of the bound parameters on the first `max_rows` (0: all) of
  // the test rows in a fixed seeded order. What is bound is as it was.
  // Errors: FAILED_PRECONDITION without test data; DATA_LOSS when outputs or
  // loss are not finite, with the rows; RESOURCE_EXHAUSTED; INTERNAL or
  // INVALID_ARGUMENT when the model fails.
  virtual absl::StatusOr<Evaluation> Evaluate(int64_t max_rows) = 0;

  // Nullopt: it draws no mini-batches.
  virtual std::optional<BatchPosition> position() const { return std::nullopt; }
  // Goes on with the mini-batches from there.
  // Errors: INVALID_ARGUMENT when `position` is for other rows; nothing
  // changes.
  virtual absl::Status GoTo(const BatchPosition& /*position*/) {
    return absl::OkStatus();
  }
};

// The same, off the loop: each call starts work and `done` is called on the
// loop later, never from inside the call. One call at a time. Loop only.
class Trainer {
 public:
  virtual ~Trainer() = default;

  virtual const ModelInfo& model() const = 0;
  virtual const DataInfo& data() const = 0;

  // As Learner::Bind and Initialise, immediate (nothing else is running).
  virtual absl::Status Bind(absl::Span<float> parameters,
                            absl::Span<float> gradient,
                            absl::Span<float> buffers) = 0;
  virtual absl::Status Initialise(uint64_t seed) = 0;

  // As the learner's, as of the last call that has ended; and GoTo, when
  // nothing is running.
  virtual std::optional<BatchPosition> position() const { return std::nullopt; }
  virtual absl::Status GoTo(const BatchPosition& /*position*/) {
    return absl::OkStatus();
  }

  virtual void Gradient(
      const GradientRequest& request,
      std::function<void(absl::StatusOr<GradientResult>)> done) = 0;
  virtual void Predict(
      const PredictRequest& request,
      std::function<void(absl::StatusOr<Predictions>)> done) = 0;
  virtual void Evaluate(
      int64_t max_rows,
      std::function<void(absl::StatusOr<Evaluation>)> done) = 0;
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_LEARNER_H_
