#include "daemon/learner/trial.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/catalogue/regulariser.h"
#include "daemon/learner/flat_binding.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/torch_errors.h"
#include "daemon/learner/training_pass.h"

namespace dfl::learner {
namespace {

enum class Filling { kRows, kZeros };

constexpr uint64_t kSeed = 1;  // of the model's own random numbers

class Trial {
 public:
  // Everything is borrowed. Bind comes first.
  Trial(const ResolvedSpec& spec, const TrialData& data, Module& module,
        FlatBinding binding)
      : spec_(spec),
        data_(data),
        module_(module),
        binding_(std::move(binding)),
        batch_(spec.input, data.device) {}

  void Bind() {
    parameters_.resize(static_cast<size_t>(binding_.parameter_count()));
    gradient_.resize(parameters_.size());
    buffers_.resize(static_cast<size_t>(binding_.buffer_count()));
    binding_.ReadValues(absl::MakeSpan(parameters_), absl::MakeSpan(buffers_));
    first_buffers_ = buffers_;
    binding_.Bind(absl::MakeSpan(parameters_), absl::MakeSpan(gradient_),
                  absl::MakeSpan(buffers_), !data_.device.is_cpu());
  }

  absl::StatusOr<TrialResult> Run() {
    TrialResult result;
    for (const int64_t rows : {int64_t{1}, int64_t{2}, WholeBatch()}) {
      DFL_RETURN_IF_ERROR(Evaluate(rows).status());
    }
    DFL_RETURN_IF_ERROR(Warn(&result.warnings));
    DFL_ASSIGN_OR_RETURN(const bool two, Train(2, Filling::kRows));
    DFL_RETURN_IF_ERROR(Train(WholeBatch(), Filling::kRows).status());
    DFL_ASSIGN_OR_RETURN(const bool needs_two, NeedsTwoRows(two));
    if (!needs_two) return result;
    result.min_rows = 2;
    DFL_RETURN_IF_ERROR(CheckTwoRows());
    return result;
  }

 private:
  int64_t WholeBatch() const {
    return std::min(data_.batch_size, data_.train.size());
  }

  void FillWith(absl::Span<const int64_t> rows) {
    batch_.Fill(data_.train, rows, data_.standardizer);
    std::copy(first_buffers_.begin(), first_buffers_.end(), buffers_.begin());
  }

  void Fill(int64_t rows, Filling filling) {
    std::vector<int64_t> indices(static_cast<size_t>(rows));
    std::iota(indices.begin(), indices.end(), int64_t{0});
    for (int64_t& index : indices) index %= data_.train.size();
    FillWith(indices);
    if (filling == Filling::kZeros) {
      at::Tensor input = batch_.input();
      input.zero_();
    }
  }

  absl::Status Unfit(const absl::Status& status, const char* mode,
                     int64_t rows) const {
    if (absl::IsResourceExhausted(status)) return status;
    return absl::InvalidArgumentError(absl::StrCat(
        "in ", mode, " mode with ", rows,
        rows == 1 ? " row: " : " rows: ", status.message(),
        absl::IsInternal(status)
            ? absl::StrCat("; allowed: a model that takes float32 [rows, ",
                           absl::StrJoin(spec_.input, ", "),
                           "] with any number of rows in both modes")
            : ""));
  }

  absl::StatusOr<at::Tensor> Evaluate(int64_t rows) {
    at::Tensor outputs;
    const absl::Status status = Guarded("forward", [&]() -> absl::Status {
      Fill(rows, Filling::kRows);
      binding_.BeginEvaluation();
      DFL_ASSIGN_OR_RETURN(outputs, ComputeOutputs(Model(), batch_));
      return absl::OkStatus();
    });
    if (!status.ok()) return Unfit(status, "evaluation", rows);
    return outputs;
  }

  // Whether the gradient and all that it comes with is finite.
  absl::StatusOr<bool> Train(int64_t rows, Filling filling) {
    double loss = 0;
    const absl::Status status = Guarded("gradient", [&]() -> absl::Status {
      Fill(rows, filling);
      DFL_ASSIGN_OR_RETURN(loss, ComputeGradient(Model(), batch_, kSeed));
      return absl::OkStatus();
    });
    if (!status.ok()) return Unfit(status, "training", rows);
    return std::isfinite(loss) && AllFinite(gradient_) && AllFinite(buffers_);
  }

  BoundModel Model() { return {spec_, module_, binding_}; }

  // `two`: whether two rows gave a finite gradient.
  absl::StatusOr<bool> NeedsTwoRows(bool two) {
    const absl::StatusOr<bool> one = Train(1, Filling::kRows);
    if (absl::IsResourceExhausted(one.status())) return one.status();
    if (one.ok() && *one) return MixesVectors();
    if (two) return true;
    // The rows or the weights are not finite themselves.
    const absl::StatusOr<bool> zero = Train(1, Filling::kZeros);
    const absl::StatusOr<bool> zeros = Train(2, Filling::kZeros);
    return (!zero.ok() || !*zero) && zeros.ok() && *zeros;
  }

  // Whether rows without extent, of which one has no statistics, change each
  // other's outputs in training.
  absl::StatusOr<bool> MixesVectors() {
    for (size_t axis = 1; axis < spec_.input.size(); ++axis) {
      if (spec_.input[axis] > 1) return false;
    }
    DFL_ASSIGN_OR_RETURN(const at::Tensor alone, FirstOutputBeside(0));
    const int64_t size = data_.train.size();
    for (const int64_t other : {int64_t{1}, size / 2, size - 1}) {
      if (other >= size) continue;
      // A row at which the model fails is a bad row: it says nothing here.
      const absl::StatusOr<at::Tensor> beside = FirstOutputBeside(other);
      if (beside.ok() && Differ(alone, *beside)) return true;
    }
    return false;
  }

  // What training makes of the first row in a batch with row `other`.
  absl::StatusOr<at::Tensor> FirstOutputBeside(int64_t other) {
    at::Tensor first;
    const absl::Status status = Guarded("forward", [&]() -> absl::Status {
      const c10::AutoGradMode no_gradients(false);
      FillWith({0, other});
      binding_.BeginEvaluation();
      ForwardMode mode;
      mode.training = true;
      mode.dropout_seed = kSeed;
      const auto outputs = module_.Forward(batch_.input(), mode);
      DFL_RETURN_IF_ERROR(module_.TakeBack(Module::Assigned::kDrop));
      DFL_RETURN_IF_ERROR(outputs.status());
      DFL_RETURN_IF_ERROR(CheckOutputs(spec_, 2, *outputs));
      first = (*outputs)[0].clone();
      return absl::OkStatus();
    });
    if (!status.ok()) return Unfit(status, "training", 2);
    return first;
  }

  static bool Differ(const at::Tensor& a, const at::Tensor& b) {
    const double distance = (a - b).abs().max().item<double>();
    return distance > 1e-5 * (1 + a.abs().max().item<double>());
  }

  absl::Status CheckTwoRows() const {
    const char* const why =
        "the model normalises by the batch (batch normalisation), so a batch "
        "of one row cannot train it";
    if (data_.train.size() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(why,
                       ", and this node has one training row; allowed: "
                       "two rows or more"));
    }
    if (data_.batch_size < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("batch_size: 1, but ", why, "; allowed: 2 or more"));
    }
    return absl::OkStatus();
  }

  absl::Status Warn(std::vector<std::string>* warnings) {
    DFL_ASSIGN_OR_RETURN(const at::Tensor outputs, Evaluate(2));
    if (buffers_ != first_buffers_ && AllFinite(buffers_)) {
      warnings->push_back(
          "forward changes buffers in evaluation mode (a model traced while it "
          "trained?); evaluations undo it");
    }
    DFL_ASSIGN_OR_RETURN(const at::Tensor again, Evaluate(2));
    if (Differ(outputs, again)) {
      warnings->push_back(
          "forward gives two results for the same rows in evaluation mode (a "
          "dropout traced while it trained?); evaluations are as random");
    }
    if (spec_.loss == LossKind::kCrossEntropy && outputs.dim() == 2 &&
        IsShares(outputs)) {
      warnings->push_back(
          "the outputs of each row are shares of 1, as after a softmax; the "
          "cross-entropy takes logits and applies a softmax itself");
    }
    return absl::OkStatus();
  }

  static bool IsShares(const at::Tensor& outputs) {
    constexpr double kSlack = 1e-4;
    return outputs.min().item<double>() >= 0 &&
           (outputs.sum(1) - 1).abs().max().item<double>() < kSlack;
  }

  const ResolvedSpec& spec_;
  const TrialData& data_;
  Module& module_;
  FlatBinding binding_;
  BatchTensors batch_;
  FlatVector parameters_;
  FlatVector gradient_;
  FlatVector buffers_;
  FlatVector first_buffers_;
};

}  // namespace

absl::StatusOr<TrialResult> TryModel(const ResolvedSpec& spec,
                                     const TrialData& data, Module& module) {
  DFL_ASSIGN_OR_RETURN(
      FlatBinding binding,
      FlatBinding::Create(module.Parameters(), module.Buffers()));
  Trial trial(spec, data, module, std::move(binding));
  DFL_RETURN_IF_ERROR(Guarded("binding the model", [&] {
    trial.Bind();
    return absl::OkStatus();
  }));
  return trial.Run();
}

}  // namespace dfl::learner
