#include "daemon/learner/torch_learner.h"

#include <ATen/ATen.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/shape.h"
#include "daemon/data/batch_sampler.h"
#include "daemon/learner/bad_batch.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/dropout.h"
#include "daemon/learner/evaluation.h"
#include "daemon/learner/flat_binding.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/model_hash.h"
#include "daemon/learner/model_spec.h"
#include "daemon/learner/models.h"
#include "daemon/learner/module.h"
#include "daemon/learner/process_settings.h"
#include "daemon/learner/regulariser.h"
#include "daemon/learner/torch_errors.h"
#include "daemon/learner/torchscript.h"
#include "daemon/learner/training_pass.h"
#include "daemon/learner/trial.h"

namespace dfl::learner {
namespace {

// What a module needs to become a learner.
struct Parts {
  ResolvedSpec spec;
  std::unique_ptr<Module> module;
  std::string archive_hash;  // "" unless TorchScript
  std::vector<ports::FixedTensor> others;
  std::map<std::string, std::string> other_aliases;
  TrialResult trial;
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
    info_.others = std::move(parts.others);
    info_.aliases = binding_.aliases();
    info_.aliases.merge(parts.other_aliases);
    info_.min_batch_rows = parts.trial.min_rows;
    info_.warnings = std::move(parts.trial.warnings);
    FillContract(parts.archive_hash);
    sampler_.set_min_rows(info_.min_batch_rows);
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
    if (bound_) {
      return absl::FailedPreconditionError(
          "learner: it is bound already; allowed: one binding of a learner");
    }
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
    DFL_RETURN_IF_ERROR(CheckBound());
    return Guarded("initialising the model", [&] {
      return module_->Initialise(seed, info_, parameters_, buffers_);
    });
  }

  std::optional<ports::BatchPosition> position() const override {
    const data::BatchSampler::State state = sampler_.state();
    return ports::BatchPosition{state.seed, state.rows, state.pass,
                                state.position};
  }

  absl::Status GoTo(const ports::BatchPosition& position) override {
    DFL_RETURN_IF_ERROR(sampler_.Restore(
        {position.seed, position.rows, position.pass, position.row}));
    batch_is_good_ = false;  // none was drawn since: there is none to repeat
    return absl::OkStatus();
  }

  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    DFL_RETURN_IF_ERROR(CheckBound());
    DFL_CHECK(request.batch_size >= 1);
    EnterThread();
    sampler_.set_batch_size(request.batch_size);
    const absl::Span<const int64_t> rows = request.same_batch && batch_is_good_
                                               ? sampler_.Again()
                                               : sampler_.Next();
    KeepBuffers();
    const absl::StatusOr<double> loss = BatchLoss(request.step, rows);
    batch_is_good_ = loss.ok();
    if (!loss.ok()) {
      PutBuffersBack();
      std::fill(gradient_.begin(), gradient_.end(), 0.0F);
      return loss.status();
    }
    ports::GradientResult result;
    result.rows = static_cast<int64_t>(rows.size());
    result.loss = *loss;
    return result;
  }

  absl::StatusOr<ports::Predictions> Predict(
      const ports::PredictRequest& request) override {
    DFL_RETURN_IF_ERROR(CheckBound());
    DFL_CHECK(request.batch_size >= 1);
    DFL_RETURN_IF_ERROR(CheckPredict(request));
    EnterThread();
    sampler_.set_batch_size(request.batch_size);
    const absl::Span<const int64_t> rows = sampler_.Next();
    ports::Predictions result;
    result.rows = static_cast<int64_t>(rows.size());
    KeepBuffers();
    const absl::Status status = Guarded("prediction", [&]() -> absl::Status {
      batch_.Fill(data_.train, rows, data_.standardizer);
      binding_.BeginEvaluation();
      DFL_RETURN_IF_ERROR(PredictBatch(&result));
      for (const core::ModelValues& model : *request.models) {
        // Of the buffers a copy: a model may change them even so.
        lent_buffers_.assign(model.buffers.begin(), model.buffers.end());
        binding_.Borrow(model.parameters, lent_buffers_);
        DFL_RETURN_IF_ERROR(PredictBatch(&result));
      }
      return absl::OkStatus();
    });
    DFL_RETURN_IF_ERROR(Guarded("prediction", [&] {
      binding_.Return();
      return absl::OkStatus();
    }));
    PutBuffersBack();
    DFL_RETURN_IF_ERROR(status);
    return result;
  }

  absl::StatusOr<ports::Evaluation> Evaluate(int64_t max_rows) override {
    DFL_RETURN_IF_ERROR(CheckBound());
    if (data_info_.test_rows == 0) {
      return absl::FailedPreconditionError(
          "evaluation: this node has no test data; allowed: a test set in its "
          "settings");
    }
    EnterThread();
    const int64_t total = max_rows > 0
                              ? std::min(max_rows, data_info_.test_rows)
                              : data_info_.test_rows;
    KeepBuffers();
    ports::Evaluation result;
    const absl::Status status = Guarded("evaluation", [&]() -> absl::Status {
      DFL_ASSIGN_OR_RETURN(result,
                           EvaluateRows(Bound(), *data_.test,
                                        absl::MakeConstSpan(evaluation_order_)
                                            .first(static_cast<size_t>(total)),
                                        data_.standardizer, batch_));
      return absl::OkStatus();
    });
    PutBuffersBack();
    DFL_RETURN_IF_ERROR(status);
    return result;
  }

 protected:
  Module& module() { return *module_; }
  const FlatBinding& binding() const { return binding_; }

 private:
  // The bound buffers as they are before a pass, and back to that. Models
  // without buffers pay nothing.
  void KeepBuffers() { kept_buffers_.assign(buffers_.begin(), buffers_.end()); }
  void PutBuffersBack() {
    std::copy(kept_buffers_.begin(), kept_buffers_.end(), buffers_.begin());
  }

  absl::Status CheckBound() const {
    if (bound_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "learner: the model is not bound to memory (did that fail before?); "
        "allowed: after Bind");
  }

  absl::Status CheckPredict(const ports::PredictRequest& request) const {
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
    return absl::OkStatus();
  }

  void FillContract(const std::string& archive_hash) {
    core::DataContract& contract = info_.contract;
    contract = data_.contract;
    contract.task = spec_.classes == 0 ? core::Task::kRegression
                                       : core::Task::kClassification;
    contract.shape = data_.train.dataset().shape();
    contract.loss = LossText(spec_);
    contract.model = ModelHash(spec_, archive_hash);
    info_.scaling = contract.input;
    if (info_.scaling.mean.empty()) {
      info_.scaling.mean = data_.standardizer.mean();
      info_.scaling.std = data_.standardizer.std();
    }
  }

  void EnterThread() {
    if (std::this_thread::get_id() == thread_) return;
    thread_ = std::this_thread::get_id();
    SetCallingThread(options_.threads);
  }

  BoundModel Bound() { return {spec_, *module_, binding_}; }

  // Leaves the gradient of these rows in the bound vector, and returns their
  // loss. An error may leave anything there and in the buffers.
  absl::StatusOr<double> BatchLoss(int64_t step,
                                   absl::Span<const int64_t> rows) {
    const std::string name = absl::StrCat("gradient ", step);
    double loss = 0;
    const absl::Status status = Guarded(name, [&]() -> absl::Status {
      batch_.Fill(data_.train, rows, data_.standardizer);
      DFL_ASSIGN_OR_RETURN(
          loss, ComputeGradient(Bound(), batch_,
                                DropoutSeed(options_.data_seed, step)));
      return absl::OkStatus();
    });
    if (absl::IsResourceExhausted(status)) return status;
    if (!status.ok()) {
      return absl::DataLossError(absl::StrCat(
          absl::StartsWith(status.message(), name) ? ""
                                                   : absl::StrCat(name, ": "),
          status.message(), "; ",
          DescribeRows(data_.train, "training", rows, batch_)));
    }
    loss += AddRegulariser(spec_.l2, parameters_, gradient_);
    const char* const wild = !std::isfinite(loss)    ? "the loss"
                             : !AllFinite(gradient_) ? "the gradient"
                             : !AllFinite(buffers_)  ? "a buffer"
                                                     : nullptr;
    if (wild == nullptr) return loss;
    return absl::DataLossError(absl::StrCat(
        name, ": ", wild, " is not finite; ",
        DescribeRows(data_.train, "training", rows, batch_),
        "; either training diverged (smaller steps help) or the data is to be "
        "mended or standardised"));
  }

  // Adds the probabilities, [rows x classes], of what is in batch_.
  absl::Status PredictBatch(ports::Predictions* result) {
    DFL_ASSIGN_OR_RETURN(const at::Tensor outputs,
                         ComputeOutputs(Bound(), batch_));
    const at::Tensor p = Probabilities(outputs).to(at::kCPU).contiguous();
    const double* const values = p.data_ptr<double>();
    result->probabilities.emplace_back(values, values + p.numel());
    return absl::OkStatus();
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
  std::vector<float> kept_buffers_;
  std::vector<float> lent_buffers_;
  bool bound_ = false;
  bool batch_is_good_ = true;  // the last one gave a gradient
  std::thread::id thread_;     // the last caller's
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
      return static_cast<ScriptModule&>(module()).Export(
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
        "data: test rows are ", core::ShapeText(test.shape()), " with ",
        test.is_regression() ? "targets" : "labels",
        "; allowed: ", core::ShapeText(train.shape()), " with ",
        train.is_regression() ? "targets" : "labels", ", as in training"));
  }
  return absl::OkStatus();
}

// Tries the model of a file, which is read twice for that: trying it changes
// it.
absl::StatusOr<TrialResult> TryFile(const ResolvedSpec& spec,
                                    const LearnerData& data,
                                    const LearnerOptions& options) {
  const at::Device device(options.device);
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<ScriptModule> module,
                       ScriptModule::Load(spec, device));
  auto result = TryModel(
      spec, {data.train, data.standardizer, options.batch_size, device},
      *module);
  if (!result.ok()) return Annotate(result.status(), spec.path);
  for (std::string& warning : result->warnings) {
    warning = absl::StrCat(spec.path, ": ", warning);
  }
  return result;
}

absl::StatusOr<Parts> MakeParts(const ResolvedSpec& spec,
                                const LearnerData& data,
                                const LearnerOptions& options) {
  const at::Device device(options.device);
  Parts parts;
  parts.spec = spec;
  if (spec.kind != ModelKind::kTorchScript) {
    // Every kind of ours takes any number of rows in both modes.
    parts.module = BuildModel(spec, device);
    return parts;
  }
  DFL_ASSIGN_OR_RETURN(parts.trial, TryFile(spec, data, options));
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ScriptModule> module,
                       ScriptModule::Load(spec, device));
  parts.archive_hash = module->archive_hash();
  parts.others = module->Others();
  parts.other_aliases = module->OtherAliases();
  for (std::string& warning : module->Warnings()) {
    parts.trial.warnings.push_back(std::move(warning));
  }
  parts.module = std::move(module);
  return parts;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
    const core::ModelSpec& spec, const ResolvedSpec& resolved, LearnerData data,
    const LearnerOptions& options) {
  SetProcess(options.threads);
  DFL_ASSIGN_OR_RETURN(Parts parts, MakeParts(resolved, data, options));
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

absl::StatusOr<ModelIdentity> IdentifyModel(const core::ModelSpec& spec,
                                            core::Task task,
                                            const std::vector<int64_t>& shape) {
  const int64_t classes = task == core::Task::kRegression ? 0 : 1;
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveStructure(spec, {shape, classes}));
  std::string archive;
  if (resolved.kind == ModelKind::kTorchScript) {
    DFL_ASSIGN_OR_RETURN(archive, HashArchive(resolved.path));
  }
  return ModelIdentity{LossText(resolved), ModelHash(resolved, archive)};
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
  if (!data.contract.classes.empty()) {
    shape.classes = static_cast<int64_t>(data.contract.classes.size());
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
