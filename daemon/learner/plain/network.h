// Fully connected layers, with ReLU and dropout between them: what `linear`,
// `logistic`, `svm` (one layer, which starts at 0) and `mlp` are. Tensors,
// their names and order and their starting values are those of
// learner/models.h, so that nodes with either learner can learn together.
#ifndef DFL_LEARNER_PLAIN_NETWORK_H_
#define DFL_LEARNER_PLAIN_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/learner/catalogue/initialise.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/plain/matrix.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// Whether such a network is what `spec` names.
bool IsNetwork(const ResolvedSpec& spec);

// Thread-compatible. Call order: Forward or TrainForward, then what reads its
// result; Backward after TrainForward only.
class Network {
 public:
  // IsNetwork(spec), checked.
  explicit Network(const ResolvedSpec& spec);

  const std::vector<ports::TensorInfo>& tensors() const { return tensors_; }
  const std::vector<InitRule>& rules() const { return rules_; }
  int64_t parameter_count() const { return parameter_count_; }

  // Outputs [rows x outputs], row-major, of `input` [rows x input_size] for the
  // parameters [n]. Valid until the next call.
  absl::Span<const float> Forward(absl::Span<const float> parameters,
                                  absl::Span<const float> input);

  // The same in training: with dropout, and what Backward needs is kept. Both
  // spans must stay as they are until then.
  absl::Span<const float> TrainForward(absl::Span<const float> parameters,
                                       absl::Span<const float> input,
                                       uint64_t dropout_seed);

  // Writes into `gradient` [n] the gradient of the loss whose derivatives by
  // the outputs are `by_outputs` [rows x outputs].
  void Backward(absl::Span<const float> by_outputs, absl::Span<float> gradient);

 private:
  struct Layer {
    int64_t in = 0;
    int64_t out = 0;
    size_t weight = 0;          // offset of [out x in], row-major
    size_t bias = 0;            // offset of [out]
    std::vector<float> result;  // [rows x out], after ReLU and dropout
    std::vector<float> mask;    // of dropout; empty: none
  };

  void AddLayer(const std::string& name, int64_t in, int64_t out,
                InitRule weights);
  absl::Span<const float> Run(absl::Span<const float> parameters,
                              absl::Span<const float> input,
                              const uint64_t* dropout_seed);
  // layer.result = x W^T + b for `x` [rows x in].
  void Apply(absl::Span<const float> parameters, const float* x, Layer& layer);
  // What ReLU and dropout make of the result of hidden layer `index`.
  void Activate(Layer& layer, int64_t index, const uint64_t* dropout_seed);
  // by_outputs_ becomes the derivatives by the result of the layer before.
  void GoBack(const Layer& layer, const Layer& before);

  std::vector<Layer> layers_;
  std::vector<ports::TensorInfo> tensors_;
  std::vector<InitRule> rules_;
  int64_t parameter_count_ = 0;
  double dropout_;
  Multiplier multiplier_;
  int64_t rows_ = 0;
  absl::Span<const float> parameters_;  // of the last TrainForward
  absl::Span<const float> input_;
  std::vector<float> by_outputs_;  // [rows x out] of the layer that is at work
  std::vector<float> by_inputs_;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PLAIN_NETWORK_H_
