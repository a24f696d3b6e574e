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
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/vector/model_values.h"

namespace dfl::ports {

// One named tensor inside a flat vector, row-major, float32.
struct TensorInfo {
  std::string name;            // the module's own, e.g. "conv1.weight"
  std::vector<int64_t> shape;  // may be empty: a scalar
  int64_t offset = 0;          // of its first value in the flat vector
  int64_t size = 0;            // number of values
};

struct ModelInfo {
  std::string kind;                    // e.g. "cnn"
  std::vector<TensorInfo> parameters;  // trained, in flat order
  std::vector<TensorInfo> buffers;     // floating-point, untrained
  int64_t parameter_count = 0;         // n
  int64_t buffer_count = 0;            // b
  // SHA-256 over names, shapes, dtypes and the model's spec (TorchScript: the
  // file's hash). Nodes with different fingerprints never mix.
  std::string fingerprint;
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
  // Rows of the mini-batch (the last of a pass may be shorter), >= 1.
  int64_t batch_size = 32;
  // The mini-batch of the gradient before once more, instead of the next one.
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

struct Predictions {
  int64_t rows = 0;  // of the mini-batch
  // Softmax of the outputs, [rows x classes], of the bound model first.
  std::vector<std::vector<double>> probabilities;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // in [0, 1]; 0 for regression
  double macro_f1 = 0;  // mean over classes of F1, in [0, 1]; 0 for regression
  int64_t rows = 0;     // evaluated
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
  virtual absl::Status Bind(absl::Span<float> parameters,
                            absl::Span<float> gradient,
                            absl::Span<float> buffers) = 0;

  // Writes the seeded initialisation into the bound parameters and buffers: the
  // same bits on every node, whatever its LibTorch and processor.
  virtual absl::Status Initialise(uint64_t seed) = 0;

  // Draws the next mini-batch (or takes the last again) and writes the gradient
  // of its mean loss at the bound parameters into the bound gradient.
  // Errors: INTERNAL when LibTorch fails; DATA_LOSS when loss or gradient is
  // not finite (the text says which).
  virtual absl::StatusOr<GradientResult> Gradient(
      const GradientRequest& request) = 0;

  // Draws the next mini-batch and predicts it, without dropout, with the bound
  // model and with each of `request.models`. A single output f for two classes
  // counts as the logits 0 and f. What is bound is as it was.
  // Errors: FAILED_PRECONDITION when the model tells no classes;
  // INVALID_ARGUMENT for models of other lengths; INTERNAL as above.
  virtual absl::StatusOr<Predictions> Predict(
      const PredictRequest& request) = 0;

  // Loss and scores of the bound parameters on the first `max_rows` (0: all) of
  // the test rows in a fixed seeded order.
  // Errors: FAILED_PRECONDITION without test data; INTERNAL.
  virtual absl::StatusOr<Evaluation> Evaluate(int64_t max_rows) = 0;
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
