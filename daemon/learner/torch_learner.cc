#include "daemon/learner/torch_learner.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/dropout.h"
#include "daemon/learner/fingerprint.h"
#include "daemon/learner/flat_binding.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/model_spec.h"
#include "daemon/learner/models.h"
#include "daemon/learner/module.h"
#include "daemon/learner/process_settings.h"
#include "daemon/learner/regulariser.h"
#include "daemon/learner/scores.h"
#include "daemon/learner/torch_errors.h"
#include "daemon/learner/torchscript.h"

namespace dfl::learner {
namespace {

// The order of the test rows: the same on every node and in every run, so that
// the first rows of it are a fixed sample.
std::vector<int64_t> EvaluationOrder(int64_t rows) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  Rng(DeriveSeed(0, "evaluation order")).Shuffle(absl::MakeSpan(order));
  return order;
}

// Rows evaluated at once: what one takes as activations grows with its size.
int64_t EvaluationBatch(int64_t row_size) {
  constexpr int64_t kValues = 100000;
  return std::max<int64_t>(1, std::min<int64_t>(256, kValues / row_size));
}

// What a module needs to become a learner.
struct Parts {
  ResolvedSpec spec;
  std::unique_ptr<Module> module;
  std::string file_hash;  // "" unless TorchScript
};

class TorchLearner : public ports::Learner {
 public:
  TorchLearner(Parts parts, FlatBinding binding, LearnerData data,
               const LearnerOptions& options, std::string kind)
      : spec_(std::move(parts.spec)),
        module_(std::move(parts.module)),
        binding_(std::move(binding)),
        data_(std::move(data)),
        options_(options),
        device_(options.device),
        sampler_(data_.train.size(), 1,
                 DeriveSeed(options.data_seed, "learner batches")),
        batch_(spec_.input, device_) {
    info_.kind = std::move(kind);
    info_.parameters = binding_.parameters();
    info_.buffers = binding_.buffers();
    info_.parameter_count = binding_.parameter_count();
    info_.buffer_count = binding_.buffer_count();
    info_.fingerprint = Fingerprint(spec_, info_, parts.file_hash);
    data_info_.train_rows = data_.train.size();
    data_info_.test_rows = data_.test.has_value() ? data_.test->size() : 0;
    data_info_.classes = spec_.classes;
    data_info_.bytes = data_.train.dataset().memory_bytes();
    if (data_.test.has_value() &&
        &data_.test->dataset() != &data_.train.dataset()) {
      data_info_.bytes += data_.test->dataset().memory_bytes();
    }
    evaluation_order_ = EvaluationOrder(data_info_.test_rows);
  }

  const ports::ModelInfo& model() const override { return info_; }
  const ports::DataInfo& data() const override { return data_info_; }

  absl::Status Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                    absl::Span<float> buffers) override {
    DFL_CHECK(!bound_);
    const bool sizes_fit =
        static_cast<int64_t>(parameters.size()) == info_.parameter_count &&
        static_cast<int64_t>(gradient.size()) == info_.parameter_count &&
        static_cast<int64_t>(buffers.size()) == info_.buffer_count;
    if (!sizes_fit) {
      return absl::InvalidArgumentError(absl::StrCat(
          "learner: buffers of ", parameters.size(), ", ", gradient.size(),
          " and ", buffers.size(), " values given; allowed: ",
          info_.parameter_count, " twice and ", info_.buffer_count));
    }
    DFL_RETURN_IF_ERROR(Guarded("binding the model", [&] {
      binding_.Bind(parameters, gradient, buffers, !device_.is_cpu());
      return absl::OkStatus();
    }));
    parameters_ = parameters;
    gradient_ = gradient;
    buffers_ = buffers;
    bound_ = true;
    return absl::OkStatus();
  }

  absl::Status Initialise(uint64_t seed) override {
    DFL_CHECK(bound_);
    return Guarded("initialising the model", [&] {
      return module_->Initialise(seed, info_, parameters_, buffers_);
    });
  }

  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    DFL_CHECK(bound_ && request.batch_size >= 1);
    EnterThread();
    sampler_.set_batch_size(request.batch_size);
    const absl::Span<const int64_t> rows =
        request.same_batch ? sampler_.Again() : sampler_.Next();
    ports::GradientResult result;
    result.rows = static_cast<int64_t>(rows.size());
    DFL_RETURN_IF_ERROR(Guarded(absl::StrCat("gradient ", request.step), [&] {
      const c10::AutoGradMode gradients(true);
      batch_.Fill(data_.train, rows, data_.standardizer);
      binding_.BeginGradient();
      ForwardMode mode;
      mode.training = true;
      mode.dropout_seed = DropoutSeed(options_.data_seed, request.step);
      const at::Tensor loss = MeanLoss(
          spec_, module_->Forward(batch_.input(), mode), batch_.answers());
      loss.backward();
      result.loss = loss.item<double>();
      return binding_.EndGradient();
    }));
    result.loss += AddRegulariser(spec_.l2, parameters_, gradient_);
    DFL_RETURN_IF_ERROR(CheckFinite(request.step, result.loss));
    return result;
  }

  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override {
    DFL_CHECK(bound_ && request.batch_size >= 1);
    if (spec_.classes == 0) {
      return absl::FailedPreconditionError(
          "prediction: the model is a regression and tells no classes");
    }
    for (const core::ModelValues& model : *request.models) {
      if (model.parameters.size() == parameters_.size() &&
          model.buffers.size() == buffers_.size()) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("prediction: a model of ", model.parameters.size(),
                       " parameters and ", model.buffers.size(),
                       " buffer values given; allowed: ", parameters_.size(),
                       " and ", buffers_.size()));
    }
    EnterThread();
    sampler_.set_batch_size(request.batch_size);
    const absl::Span<const int64_t> rows = sampler_.Next();
    ports::Predictions result;
    result.rows = static_cast<int64_t>(rows.size());
    const absl::Status status = Guarded("prediction", [&] {
      const c10::AutoGradMode no_gradients(false);
      batch_.Fill(data_.train, rows, data_.standardizer);
      binding_.BeginEvaluation();
      result.probabilities.push_back(PredictBatch());
      for (const core::ModelValues& model : *request.models) {
        binding_.Borrow(model.parameters, model.buffers);
        result.probabilities.push_back(PredictBatch());
      }
      return absl::OkStatus();
    });
    DFL_RETURN_IF_ERROR(Guarded("prediction", [&] {
      binding_.Return();
      return absl::OkStatus();
    }));
    DFL_RETURN_IF_ERROR(status);
    return result;
  }

  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override {
    DFL_CHECK(bound_);
    if (data_info_.test_rows == 0) {
      return absl::FailedPreconditionError(
          "evaluation: this node has no test data; allowed: a test set in its "
          "settings");
    }
    EnterThread();
    const int64_t total = max_rows > 0
                              ? std::min(max_rows, data_info_.test_rows)
                              : data_info_.test_rows;
    ports::Evaluation result;
    DFL_RETURN_IF_ERROR(Guarded("evaluation", [&] {
      result = EvaluateRows(absl::MakeConstSpan(evaluation_order_)
                                .first(static_cast<size_t>(total)));
      return absl::OkStatus();
    }));
    return result;
  }

 protected:
  const Module& module() const { return *module_; }
  const FlatBinding& binding() const { return binding_; }

 private:
  void EnterThread() {
    if (std::this_thread::get_id() == thread_) return;
    thread_ = std::this_thread::get_id();
    SetCallingThread(options_.threads);
  }

  absl::Status CheckFinite(int64_t step, double loss) const {
    const bool loss_finite = std::isfinite(loss);
    if (loss_finite && AllFinite(gradient_)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "gradient ", step, ": the ", loss_finite ? "gradient" : "loss",
        " is not finite", loss_finite ? "" : absl::StrCat(" (", loss, ")"),
        "; either training diverged (smaller steps help) or the data holds "
        "values that are not finite or far too large (standardise it)"));
  }

  // [rows x classes] of what is in batch_.
  std::vector<double> PredictBatch() {
    const at::Tensor p = Probabilities(module_->Forward(batch_.input(), {}))
                             .to(at::kCPU)
                             .contiguous();
    const double* const values = p.data_ptr<double>();
    return std::vector<double>(values, values + p.numel());
  }

  ports::Evaluation EvaluateRows(absl::Span<const int64_t> rows) {
    const c10::AutoGradMode no_gradients(false);
    binding_.BeginEvaluation();
    const size_t step =
        static_cast<size_t>(EvaluationBatch(data_.test->dataset().row_size()));
    Scores scores(spec_.classes);
    double loss_sum = 0;
    for (size_t begin = 0; begin < rows.size(); begin += step) {
      const absl::Span<const int64_t> part = rows.subspan(begin, step);
      batch_.Fill(*data_.test, part, data_.standardizer);
      const at::Tensor outputs = module_->Forward(batch_.input(), {});
      loss_sum += MeanLoss(spec_, outputs, batch_.answers()).item<double>() *
                  static_cast<double>(part.size());
      if (spec_.classes == 0) continue;
      const at::Tensor predictions =
          Predictions(outputs).to(at::kCPU).contiguous();
      scores.Add(
          batch_.labels(),
          absl::MakeConstSpan(predictions.data_ptr<int64_t>(), part.size()));
    }
    ports::Evaluation result;
    result.rows = static_cast<int64_t>(rows.size());
    result.loss = loss_sum / static_cast<double>(rows.size());
    result.accuracy = scores.Accuracy();
    result.macro_f1 = scores.MacroF1();
    return result;
  }

  ResolvedSpec spec_;
  std::unique_ptr<Module> module_;
  FlatBinding binding_;
  LearnerData data_;
  LearnerOptions options_;
  at::Device device_;
  ports::ModelInfo info_;
  ports::DataInfo data_info_;
  data::BatchSampler sampler_;
  BatchTensors batch_;
  std::vector<int64_t> evaluation_order_;
  absl::Span<float> parameters_;
  absl::Span<float> gradient_;
  absl::Span<float> buffers_;
  bool bound_ = false;
  std::thread::id thread_;  // the last caller's
};

class TorchScriptLearner final : public TorchLearner,
                                 public TorchScriptExporter {
 public:
  using TorchLearner::TorchLearner;

  absl::Status ExportTorchScript(absl::Span<const float> parameters,
                                 absl::Span<const float> buffers,
                                 const Sink& sink) override {
    const int64_t n = model().parameter_count;
    const int64_t b = model().buffer_count;
    if (static_cast<int64_t>(parameters.size()) != n ||
        static_cast<int64_t>(buffers.size()) != b) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TorchScript export: ", parameters.size(), " parameters and ",
          buffers.size(), " buffer values given; allowed: ", n, " and ", b));
    }
    return Guarded("TorchScript export", [&] {
      return static_cast<const ScriptModule&>(module()).Export(
          binding().ParameterViews(parameters), binding().BufferViews(buffers),
          sink);
    });
  }
};

absl::Status CheckOptions(const LearnerOptions& options) {
  DFL_RETURN_IF_ERROR(Annotate(CheckDevice(options.device), "device"));
  if (options.threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads: ", options.threads, " found; allowed: 1 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckData(const LearnerData& data) {
  if (data.train.size() == 0) {
    return absl::InvalidArgumentError(
        "data: no training rows; allowed: at least one (did the partition "
        "leave this node any?)");
  }
  const data::Dataset& train = data.train.dataset();
  DFL_RETURN_IF_ERROR(data.standardizer.CheckFits(train));
  if (!data.test.has_value()) return absl::OkStatus();
  const data::Dataset& test = data.test->dataset();
  if (test.shape() != train.shape() ||
      test.is_regression() != train.is_regression()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: test rows are [", absl::StrJoin(test.shape(), ", "), "] with ",
        test.is_regression() ? "targets" : "labels", "; allowed: [",
        absl::StrJoin(train.shape(), ", "), "] with ",
        train.is_regression() ? "targets" : "labels", ", as in training"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> MakeParts(const ResolvedSpec& spec, at::Device device) {
  Parts parts;
  parts.spec = spec;
  if (spec.kind == ModelKind::kTorchScript) {
    DFL_ASSIGN_OR_RETURN(std::unique_ptr<ScriptModule> module,
                         ScriptModule::Load(spec, device));
    parts.file_hash = module->file_hash();
    parts.module = std::move(module);
  } else {
    parts.module = BuildModel(spec, device);
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
    const core::ModelSpec& spec, const ResolvedSpec& resolved, LearnerData data,
    const LearnerOptions& options) {
  SetProcess(options.threads);
  DFL_ASSIGN_OR_RETURN(Parts parts,
                       MakeParts(resolved, at::Device(options.device)));
  auto binding =
      FlatBinding::Create(parts.module->Parameters(), parts.module->Buffers());
  if (!binding.ok()) return Annotate(binding.status(), resolved.path);
  if (resolved.kind == ModelKind::kTorchScript) {
    return std::make_unique<TorchScriptLearner>(
        std::move(parts), *std::move(binding), std::move(data), options,
        spec.kind);
  }
  return std::make_unique<TorchLearner>(std::move(parts), *std::move(binding),
                                        std::move(data), options, spec.kind);
}

}  // namespace

std::string TorchVersion() { return TORCH_VERSION; }

absl::Status CheckDevice(const std::string& device) {
  if (device == "cpu") return absl::OkStatus();
  absl::string_view gpu = device;
  uint32_t index = 0;
  if (!absl::ConsumePrefix(&gpu, "cuda") ||
      (!gpu.empty() &&
       !(absl::ConsumePrefix(&gpu, ":") && absl::SimpleAtoi(gpu, &index)))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", device, "\" is unknown; allowed: cpu, cuda, cuda:N"));
  }
  const auto found = static_cast<uint32_t>(torch::cuda::device_count());
  if (index < found) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "\"", device, "\", but ",
      found == 0
          ? "this LibTorch has no CUDA or finds no GPU; allowed: cpu, or a "
            "build with a LibTorch for CUDA named through CMAKE_PREFIX_PATH"
          : absl::StrCat("there are ", found,
                         " GPUs; allowed: cpu, cuda:0 to "
                         "cuda:",
                         found - 1)));
}

absl::StatusOr<std::unique_ptr<ports::Learner>> CreateTorchLearner(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options) {
  DFL_RETURN_IF_ERROR(CheckOptions(options));
  DFL_RETURN_IF_ERROR(CheckData(data));
  DataShape shape;
  shape.row = data.train.dataset().shape();
  shape.classes = data.train.dataset().classes();
  if (data.test.has_value()) {
    shape.classes = std::max(shape.classes, data.test->dataset().classes());
  }
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved, ResolveSpec(spec, shape));
  std::unique_ptr<ports::Learner> learner;
  DFL_RETURN_IF_ERROR(Guarded("creating the model", [&]() -> absl::Status {
    DFL_ASSIGN_OR_RETURN(learner,
                         Build(spec, resolved, std::move(data), options));
    return absl::OkStatus();
  }));
  return learner;
}

TorchScriptExporter* AsTorchScriptExporter(ports::Learner& learner) {
  return dynamic_cast<TorchScriptExporter*>(&learner);
}

}  // namespace dfl::learner
