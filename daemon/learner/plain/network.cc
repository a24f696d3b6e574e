#include "daemon/learner/plain/network.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/learner/catalogue/dropout.h"

namespace dfl::learner {

bool IsNetwork(const ResolvedSpec& spec) {
  return spec.kind == ModelKind::kLinear || spec.kind == ModelKind::kLogistic ||
         spec.kind == ModelKind::kSvm || spec.kind == ModelKind::kMlp;
}

Network::Network(const ResolvedSpec& spec) : dropout_(spec.dropout) {
  DFL_CHECK(IsNetwork(spec));
  if (spec.kind != ModelKind::kMlp) {  // convex
    AddLayer("linear", spec.input_size(), spec.outputs(),
             InitRule::Constant(0));
    return;
  }
  int64_t in = spec.input_size();
  for (const int64_t width : spec.hidden) {
    AddLayer(absl::StrCat("fc", layers_.size() + 1), in, width,
             InitRule::BeforeRelu(in));
    in = width;
  }
  AddLayer(absl::StrCat("fc", layers_.size() + 1), in, spec.outputs(),
           InitRule::Output(in));
}

void Network::AddLayer(const std::string& name, int64_t in, int64_t out,
                       InitRule weights) {
  Layer layer;
  layer.in = in;
  layer.out = out;
  const auto add = [this](std::string tensor, std::vector<int64_t> shape,
                          int64_t size, InitRule rule) {
    const int64_t offset = parameter_count_;
    tensors_.push_back({std::move(tensor), std::move(shape), offset, size});
    rules_.push_back(rule);
    parameter_count_ += size;
    return static_cast<size_t>(offset);
  };
  layer.weight =
      add(absl::StrCat(name, ".weight"), {out, in}, out * in, weights);
  layer.bias =
      add(absl::StrCat(name, ".bias"), {out}, out, InitRule::Constant(0));
  layers_.push_back(std::move(layer));
}

absl::Span<const float> Network::Forward(absl::Span<const float> parameters,
                                         absl::Span<const float> input) {
  return Run(parameters, input, nullptr);
}

absl::Span<const float> Network::TrainForward(
    absl::Span<const float> parameters, absl::Span<const float> input,
    uint64_t dropout_seed) {
  parameters_ = parameters;
  input_ = input;
  return Run(parameters, input, &dropout_seed);
}

absl::Span<const float> Network::Run(absl::Span<const float> parameters,
                                     absl::Span<const float> input,
                                     const uint64_t* dropout_seed) {
  DFL_CHECK(static_cast<int64_t>(parameters.size()) == parameter_count_);
  rows_ = static_cast<int64_t>(input.size()) / layers_.front().in;
  const float* x = input.data();
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    Apply(parameters, x, layer);
    if (i + 1 < layers_.size()) {
      Activate(layer, static_cast<int64_t>(i), dropout_seed);
    }
    x = layer.result.data();
  }
  return layers_.back().result;
}

void Network::Apply(absl::Span<const float> parameters, const float* x,
                    Layer& layer) {
  layer.result.resize(static_cast<size_t>(rows_ * layer.out));
  const float* const w = parameters.data() + layer.weight;
  float* const y = layer.result.data();
  constexpr int64_t kNarrow = 16;  // a panel of the multiplier
  // Narrow results lie across the panels: rows are more than outputs. Either
  // way gives the same bits.
  if (layer.out < kNarrow) {
    multiplier_.Multiply(layer.out, rows_, layer.in, {w, layer.in, 1},
                         {x, 1, layer.in}, {y, 1, layer.out});
  } else {
    multiplier_.Multiply(rows_, layer.out, layer.in, {x, layer.in, 1},
                         {w, 1, layer.in}, {y, layer.out, 1});
  }
  const float* const bias = parameters.data() + layer.bias;
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t j = 0; j < layer.out; ++j) y[row * layer.out + j] += bias[j];
  }
}

void Network::Activate(Layer& layer, int64_t index,
                       const uint64_t* dropout_seed) {
  for (float& value : layer.result) value = value < 0 ? 0 : value;
  layer.mask.clear();
  if (dropout_seed == nullptr || dropout_ <= 0) return;
  layer.mask.resize(layer.result.size());
  FillDropoutMask(*dropout_seed, index, dropout_, absl::MakeSpan(layer.mask));
  for (size_t i = 0; i < layer.mask.size(); ++i) {
    layer.result[i] *= layer.mask[i];
  }
}

void Network::Backward(absl::Span<const float> by_outputs,
                       absl::Span<float> gradient) {
  by_outputs_.assign(by_outputs.begin(), by_outputs.end());
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const float* const x =
        i == 0 ? input_.data() : layers_[i - 1].result.data();
    const float* const by_result = by_outputs_.data();
    multiplier_.Multiply(layer.out, layer.in, rows_, {by_result, 1, layer.out},
                         {x, layer.in, 1},
                         {gradient.data() + layer.weight, layer.in, 1});
    float* const bias = gradient.data() + layer.bias;
    std::fill_n(bias, layer.out, 0.0F);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t j = 0; j < layer.out; ++j) {
        bias[j] += by_result[row * layer.out + j];
      }
    }
    if (i > 0) GoBack(layer, layers_[i - 1]);
  }
}

void Network::GoBack(const Layer& layer, const Layer& before) {
  by_inputs_.resize(before.result.size());
  multiplier_.Multiply(rows_, layer.in, layer.out,
                       {by_outputs_.data(), layer.out, 1},
                       {parameters_.data() + layer.weight, layer.in, 1},
                       {by_inputs_.data(), layer.in, 1});
  // A unit that ReLU or dropout made 0 passes nothing back.
  for (size_t i = 0; i < by_inputs_.size(); ++i) {
    if (before.result[i] <= 0) {
      by_inputs_[i] = 0;
    } else if (!before.mask.empty()) {
      by_inputs_[i] *= before.mask[i];
    }
  }
  by_outputs_.swap(by_inputs_);
}

}  // namespace dfl::learner
