#include "daemon/learner/models.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/learner/catalogue/dropout.h"
#include "daemon/learner/catalogue/initialise.h"

namespace dfl::learner {
namespace {

// Collects the tensors of a model as its layers are made: names, order and
// starting values are those of the declarations.
class TensorTable {
 public:
  explicit TensorTable(at::Device device) : device_(device) {}

  at::Tensor Parameter(const std::string& name, std::vector<int64_t> shape,
                       InitRule rule) {
    at::Tensor tensor = Make(shape).set_requires_grad(true);
    parameters_.push_back({name, tensor});
    parameter_rules_.push_back(rule);
    return tensor;
  }

  at::Tensor Buffer(const std::string& name, std::vector<int64_t> shape,
                    float value) {
    at::Tensor tensor = Make(shape);
    buffers_.push_back({name, tensor});
    buffer_rules_.push_back(InitRule::Constant(value));
    return tensor;
  }

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  const std::vector<InitRule>& parameter_rules() const {
    return parameter_rules_;
  }
  const std::vector<InitRule>& buffer_rules() const { return buffer_rules_; }

 private:
  at::Tensor Make(const std::vector<int64_t>& shape) const {
    return at::empty(shape, at::TensorOptions(at::kFloat).device(device_));
  }

  at::Device device_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<InitRule> parameter_rules_;
  std::vector<InitRule> buffer_rules_;
};

// Images as [rows, height, width, channels] in memory: LibTorch's pooling is
// several times quicker so, and its convolutions no slower. With one channel
// the bytes are the same and only the strides must say it.
at::Tensor ChannelsLast(const at::Tensor& images) {
  if (images.size(1) != 1) {
    return images.contiguous(at::MemoryFormat::ChannelsLast);
  }
  const int64_t height = images.size(2);
  const int64_t width = images.size(3);
  return images.as_strided(images.sizes(), {height * width, 1, width, 1});
}

// y = x W^T + b; the bias starts at 0.
class Linear {
 public:
  Linear(TensorTable* table, const std::string& name, int64_t in, int64_t out,
         InitRule weights) {
    weight_ =
        table->Parameter(absl::StrCat(name, ".weight"), {out, in}, weights);
    bias_ = table->Parameter(absl::StrCat(name, ".bias"), {out},
                             InitRule::Constant(0));
  }

  at::Tensor operator()(const at::Tensor& x) const {
    return at::linear(x, weight_, bias_);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

struct ConvShape {
  int64_t in;
  int64_t out;
  int64_t kernel;
  int64_t stride = 1;
  int64_t padding_h = 0;
  int64_t padding_w = 0;
  bool bias = false;
};

ConvShape SquareConv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return {in, out, kernel, stride, kernel / 2, kernel / 2, false};
}

// A convolution before a ReLU (or before the normalisation that comes first);
// the bias starts at 0.
class Conv {
 public:
  Conv(TensorTable* table, const std::string& name, const ConvShape& shape)
      : shape_(shape) {
    weight_ = table->Parameter(
        absl::StrCat(name, ".weight"),
        {shape.out, shape.in, shape.kernel, shape.kernel},
        InitRule::BeforeRelu(shape.in * shape.kernel * shape.kernel));
    if (shape.bias) {
      bias_ = table->Parameter(absl::StrCat(name, ".bias"), {shape.out},
                               InitRule::Constant(0));
    }
  }

  at::Tensor operator()(const at::Tensor& x) const {
    return at::conv2d(x, weight_, bias_, {shape_.stride, shape_.stride},
                      {shape_.padding_h, shape_.padding_w});
  }

 private:
  ConvShape shape_;
  at::Tensor weight_;
  at::Tensor bias_;  // undefined: none
};

class BatchNorm {
 public:
  BatchNorm(TensorTable* table, const std::string& name, int64_t channels) {
    weight_ = table->Parameter(absl::StrCat(name, ".weight"), {channels},
                               InitRule::Constant(1));
    bias_ = table->Parameter(absl::StrCat(name, ".bias"), {channels},
                             InitRule::Constant(0));
    mean_ = table->Buffer(absl::StrCat(name, ".running_mean"), {channels}, 0);
    var_ = table->Buffer(absl::StrCat(name, ".running_var"), {channels}, 1);
  }

  at::Tensor operator()(const at::Tensor& x, bool training) const {
    constexpr double kMomentum = 0.1;
    constexpr double kEpsilon = 1e-5;
    return at::batch_norm(x, weight_, bias_, mean_, var_, training, kMomentum,
                          kEpsilon, /*cudnn_enabled=*/true);
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor mean_;
  at::Tensor var_;
};

// Everything but Forward.
class OwnModule : public Module {
 public:
  explicit OwnModule(at::Device device) : table_(device) {}

  std::vector<NamedTensor> Parameters() const override {
    return table_.parameters();
  }
  std::vector<NamedTensor> Buffers() const override { return table_.buffers(); }
  absl::Status Initialise(uint64_t seed, const ports::ModelInfo& info,
                          absl::Span<float> parameters,
                          absl::Span<float> buffers) const override {
    FillTensors(seed, info.parameters, table_.parameter_rules(), parameters);
    FillTensors(seed, info.buffers, table_.buffer_rules(), buffers);
    return absl::OkStatus();
  }
  absl::Status TakeBack(Assigned /*assigned*/) override {
    return absl::OkStatus();  // it changes values only
  }

 protected:
  TensorTable table_;
};

// linear, logistic and svm differ in their loss alone. Convex, so they start
// at 0.
class LinearModel final : public OwnModule {
 public:
  LinearModel(const ResolvedSpec& spec, at::Device device)
      : OwnModule(device),
        linear_(&table_, "linear", spec.input_size(), spec.outputs(),
                InitRule::Constant(0)) {}

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                     const ForwardMode&) override {
    return linear_(input.flatten(1));
  }

 private:
  Linear linear_;
};

// Hidden layers with ReLU and dropout: fc1, fc2, ...
class Mlp final : public OwnModule {
 public:
  Mlp(const ResolvedSpec& spec, at::Device device)
      : OwnModule(device), dropout_(spec.dropout) {
    std::vector<int64_t> widths = {spec.input_size()};
    widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
    widths.push_back(spec.outputs());
    const size_t layers = widths.size() - 1;
    for (size_t i = 0; i < layers; ++i) {
      layers_.emplace_back(&table_, absl::StrCat("fc", i + 1), widths[i],
                           widths[i + 1],
                           i + 1 < layers ? InitRule::BeforeRelu(widths[i])
                                          : InitRule::Output(widths[i]));
    }
  }

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                     const ForwardMode& mode) override {
    at::Tensor x = input.flatten(1);
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      x = at::relu(layers_[i](x));
      if (mode.training && dropout_ > 0) {
        x = x * Mask(x, mode.dropout_seed, static_cast<int64_t>(i));
      }
    }
    return layers_.back()(x);
  }

 private:
  at::Tensor Mask(const at::Tensor& like, uint64_t seed, int64_t layer) const {
    const at::Tensor mask = at::empty(like.sizes(), at::kFloat);
    FillDropoutMask(seed, layer, dropout_,
                    absl::MakeSpan(mask.data_ptr<float>(),
                                   static_cast<size_t>(mask.numel())));
    return mask.to(like.device());
  }

  std::vector<Linear> layers_;
  double dropout_;
};

// The network of the PaME experiments: images padded to 32x32, two 3x3
// convolutions (16 and 32 channels) each with ReLU and 2x2 pooling, then
// 2048 -> 128 -> classes.
//
// Two rewritings that change no bit of what it computes: the padding is the
// first convolution's own, and ReLU comes after pooling (max and ReLU commute,
// gradients too), on a quarter of the values.
class Cnn final : public OwnModule {
 public:
  Cnn(const ResolvedSpec& spec, at::Device device)
      : OwnModule(device),
        conv1_(&table_, "conv1",
               {spec.input[0], 16, 3, 1, (32 - spec.input[1]) / 2 + 1,
                (32 - spec.input[2]) / 2 + 1, true}),
        conv2_(&table_, "conv2", {16, 32, 3, 1, 1, 1, true}),
        fc1_(&table_, "fc1", 32 * 8 * 8, 128, InitRule::BeforeRelu(32 * 8 * 8)),
        fc2_(&table_, "fc2", 128, spec.outputs(), InitRule::Output(128)) {}

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                     const ForwardMode&) override {
    at::Tensor x =
        at::relu(at::max_pool2d(conv1_(ChannelsLast(input)), {2, 2}));
    x = at::relu(at::max_pool2d(conv2_(x), {2, 2}));
    return fc2_(at::relu(fc1_(x.flatten(1))));
  }

 private:
  Conv conv1_;
  Conv conv2_;
  Linear fc1_;
  Linear fc2_;
};

enum class Shortcut {
  kPadded,     // He et al. 2016, option A: subsampled, new channels are 0
  kProjected,  // option B: a strided 1x1 convolution with normalisation
};

// Two 3x3 convolutions around which the input is added.
class BasicBlock {
 public:
  BasicBlock(TensorTable* table, const std::string& name, int64_t in,
             int64_t out, int64_t stride, Shortcut shortcut)
      : stride_(stride),
        new_channels_(out - in),
        conv1_(table, absl::StrCat(name, ".conv1"),
               SquareConv(in, out, 3, stride)),
        bn1_(table, absl::StrCat(name, ".bn1"), out),
        conv2_(table, absl::StrCat(name, ".conv2"), SquareConv(out, out, 3, 1)),
        bn2_(table, absl::StrCat(name, ".bn2"), out) {
    if (shortcut == Shortcut::kProjected && (stride != 1 || in != out)) {
      projection_.emplace_back(table, absl::StrCat(name, ".downsample.0"),
                               SquareConv(in, out, 1, stride));
      projection_bn_.emplace_back(table, absl::StrCat(name, ".downsample.1"),
                                  out);
    }
  }

  at::Tensor operator()(const at::Tensor& input, bool training) const {
    at::Tensor x = at::relu(bn1_(conv1_(input), training));
    x = bn2_(conv2_(x), training);
    return at::relu(x + Skip(input, training));
  }

 private:
  at::Tensor Skip(const at::Tensor& input, bool training) const {
    if (!projection_.empty()) {
      return projection_bn_[0](projection_[0](input), training);
    }
    if (stride_ == 1 && new_channels_ == 0) return input;
    const at::Tensor sampled = input.slice(2, 0, input.size(2), stride_)
                                   .slice(3, 0, input.size(3), stride_);
    const int64_t before = new_channels_ / 2;
    return at::constant_pad_nd(sampled,
                               {0, 0, 0, 0, before, new_channels_ - before}, 0);
  }

  int64_t stride_;
  int64_t new_channels_;
  Conv conv1_;
  BatchNorm bn1_;
  Conv conv2_;
  BatchNorm bn2_;
  std::vector<Conv> projection_;          // one or none
  std::vector<BatchNorm> projection_bn_;  // one or none
};

struct ResnetPlan {
  std::vector<int64_t> widths;  // of the stages; each but the first halves
  int64_t blocks;               // a stage
  Shortcut shortcut;
  bool imagenet_stem;  // 7x7 stride 2 and pooling, else 3x3
};

// Names as torchvision's.
class Resnet final : public OwnModule {
 public:
  Resnet(const ResolvedSpec& spec, const ResnetPlan& plan, at::Device device)
      : OwnModule(device),
        imagenet_stem_(plan.imagenet_stem),
        stem_(&table_, "conv1",
              plan.imagenet_stem
                  ? SquareConv(spec.input[0], plan.widths[0], 7, 2)
                  : SquareConv(spec.input[0], plan.widths[0], 3, 1)),
        stem_bn_(&table_, "bn1", plan.widths[0]),
        blocks_(MakeBlocks(plan, &table_)),
        fc_(&table_, "fc", plan.widths.back(), spec.outputs(),
            InitRule::Output(plan.widths.back())) {}

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                     const ForwardMode& mode) override {
    at::Tensor x =
        at::relu(stem_bn_(stem_(ChannelsLast(input)), mode.training));
    if (imagenet_stem_) x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
    for (const BasicBlock& block : blocks_) x = block(x, mode.training);
    return fc_(x.mean({2, 3}));
  }

 private:
  static std::vector<BasicBlock> MakeBlocks(const ResnetPlan& plan,
                                            TensorTable* table) {
    std::vector<BasicBlock> blocks;
    int64_t in = plan.widths[0];
    for (size_t stage = 0; stage < plan.widths.size(); ++stage) {
      for (int64_t i = 0; i < plan.blocks; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        blocks.emplace_back(table, absl::StrCat("layer", stage + 1, ".", i), in,
                            plan.widths[stage], stride, plan.shortcut);
        in = plan.widths[stage];
      }
    }
    return blocks;
  }

  bool imagenet_stem_;
  Conv stem_;
  BatchNorm stem_bn_;
  std::vector<BasicBlock> blocks_;
  Linear fc_;
};

ResnetPlan Resnet20Plan() {
  return {{16, 32, 64}, 3, Shortcut::kPadded, false};
}

// Images of more than 64 pixels a side get the ImageNet stem.
ResnetPlan Resnet18Plan(const ResolvedSpec& spec) {
  constexpr int64_t kLargestCifarSide = 64;
  const bool large =
      spec.input[1] > kLargestCifarSide && spec.input[2] > kLargestCifarSide;
  return {{64, 128, 256, 512}, 2, Shortcut::kProjected, large};
}

}  // namespace

std::unique_ptr<Module> BuildModel(const ResolvedSpec& spec,
                                   at::Device device) {
  switch (spec.kind) {
    case ModelKind::kLinear:
    case ModelKind::kLogistic:
    case ModelKind::kSvm:
      return std::make_unique<LinearModel>(spec, device);
    case ModelKind::kMlp:
      return std::make_unique<Mlp>(spec, device);
    case ModelKind::kCnn:
      return std::make_unique<Cnn>(spec, device);
    case ModelKind::kResnet20:
      return std::make_unique<Resnet>(spec, Resnet20Plan(), device);
    case ModelKind::kResnet18:
      return std::make_unique<Resnet>(spec, Resnet18Plan(spec), device);
    case ModelKind::kTorchScript:
      break;
  }
  DFL_CHECK(spec.kind != ModelKind::kTorchScript);
  return nullptr;
}

}  // namespace dfl::learner
