#include "daemon/learner/torch_learner.h"

#include <ATen/ATen.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/archive_hash.h"
#include "daemon/learner/batch_tensors.h"
#include "daemon/learner/catalogue/batch_learner.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/learner/evaluation.h"
#include "daemon/learner/flat_binding.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/models.h"
#include "daemon/learner/module.h"
#include "daemon/learner/process_settings.h"
#include "daemon/learner/torch_errors.h"
#include "daemon/learner/torchscript.h"
#include "daemon/learner/training_pass.h"
#include "daemon/learner/trial.h"

namespace dfl::learner {
namespace {

// What a module needs to become a learner.
struct Parts {
  std::unique_ptr<Module> module;
  std::string archive_hash;  // "" unless TorchScript
  std::vector<ports::FixedTensor> others;
  std::map<std::string, std::string> other_aliases;
  TrialResult trial;
};

class TorchLearner : public BatchLearner {
 public:
  TorchLearner(ResolvedSpec spec, Parts parts, FlatBinding binding,
               LearnerData data, const LearnerOptions& options,
               const std::string& kind)
      : BatchLearner(std::move(spec), Describe(parts, binding, kind),
                     parts.archive_hash, std::move(data), options),
        module_(std::move(parts.module)),
        binding_(std::move(binding)),
        device_(options.device),
        batch_(this->spec().input, device_) {}

  std::string engine() const override {
    return absl::StrCat("LibTorch ", TorchVersion());
  }

 protected:
  Module& module() { return *module_; }
  const FlatBinding& binding() const { return binding_; }

 private:
  static ports::ModelInfo Describe(Parts& parts, const FlatBinding& binding,
                                   const std::string& kind) {
    ports::ModelInfo info;
    info.kind = kind;
    info.parameters = binding.parameters();
    info.buffers = binding.buffers();
    info.parameter_count = binding.parameter_count();
    info.buffer_count = binding.buffer_count();
    info.others = std::move(parts.others);
    info.aliases = binding.aliases();
    info.aliases.merge(parts.other_aliases);
    info.min_batch_rows = parts.trial.min_rows;
    info.warnings = std::move(parts.trial.warnings);
    return info;
  }

  absl::Status BindModel(absl::Span<float> parameters,
                         absl::Span<float> gradient,
                         absl::Span<float> buffers) override {
    return Guarded("binding the model", [&] {
      binding_.Bind(parameters, gradient, buffers, !device_.is_cpu());
      return absl::OkStatus();
    });
  }

  absl::Status InitialiseModel(uint64_t seed) override {
    return Guarded("initialising the model", [&] {
      return module_->Initialise(seed, model(), parameters(), buffers());
    });
  }

  void EnterCall() override { SetCallingThread(threads()); }

  absl::StatusOr<double> RowsGradient(const std::string& name,
                                      absl::Span<const int64_t> batch,
                                      uint64_t dropout_seed) override {
    double loss = 0;
    DFL_RETURN_IF_ERROR(Guarded(name, [&]() -> absl::Status {
      batch_.Fill(rows().train, batch, rows().standardizer);
      DFL_ASSIGN_OR_RETURN(loss,
                           ComputeGradient(Bound(), batch_, dropout_seed));
      return absl::OkStatus();
    }));
    return loss;
  }

  absl::Status PredictRows(absl::Span<const int64_t> batch,
                           const std::vector<core::ModelValues>& models,
                           ports::Predictions* result) override {
    const absl::Status status = Guarded("prediction", [&]() -> absl::Status {
      batch_.Fill(rows().train, batch, rows().standardizer);
      binding_.BeginEvaluation();
      DFL_RETURN_IF_ERROR(PredictBatch(result));
      for (const core::ModelValues& other : models) {
        // Of the buffers a copy: a model may change them even so.
        lent_buffers_.assign(other.buffers.begin(), other.buffers.end());
        binding_.Borrow(other.parameters, lent_buffers_);
        DFL_RETURN_IF_ERROR(PredictBatch(result));
      }
      return absl::OkStatus();
    });
    DFL_RETURN_IF_ERROR(Guarded("prediction", [&] {
      binding_.Return();
      return absl::OkStatus();
    }));
    return status;
  }

  absl::StatusOr<ports::Evaluation> EvaluateRows(
      absl::Span<const int64_t> part) override {
    ports::Evaluation result;
    DFL_RETURN_IF_ERROR(Guarded("evaluation", [&]() -> absl::Status {
      DFL_ASSIGN_OR_RETURN(result,
                           learner::EvaluateRows(Bound(), *rows().test, part,
                                                 rows().standardizer, batch_));
      return absl::OkStatus();
    }));
    return result;
  }

  std::vector<size_t> WildRowsOfBatch() const override {
    return batch_.WildRows();
  }

  BoundModel Bound() { return {spec(), *module_, binding_}; }

  // Adds the probabilities, [rows x classes], of what is in batch_.
  absl::Status PredictBatch(ports::Predictions* result) {
    DFL_ASSIGN_OR_RETURN(const at::Tensor outputs,
                         ComputeOutputs(Bound(), batch_));
    const at::Tensor p = Probabilities(outputs).to(at::kCPU).contiguous();
    const double* const values = p.data_ptr<double>();
    result->probabilities.emplace_back(values, values + p.numel());
    return absl::OkStatus();
  }

  std::unique_ptr<Module> module_;
  FlatBinding binding_;
  at::Device device_;
  BatchTensors batch_;
  std::vector<float> lent_buffers_;
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
  SetProcess(options.threads ? options.threads() : 1);
  DFL_ASSIGN_OR_RETURN(Parts parts, MakeParts(resolved, data, options));
  auto binding =
      FlatBinding::Create(parts.module->Parameters(), parts.module->Buffers());
  if (!binding.ok()) return Annotate(binding.status(), resolved.path);
  if (resolved.kind == ModelKind::kTorchScript) {
    return std::make_unique<TorchScriptLearner>(
        resolved, std::move(parts), *std::move(binding), std::move(data),
        options, spec.kind);
  }
  return std::make_unique<TorchLearner>(resolved, std::move(parts),
                                        *std::move(binding), std::move(data),
                                        options, spec.kind);
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
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveFor(spec, task, shape));
  std::string archive;
  if (resolved.kind == ModelKind::kTorchScript) {
    DFL_ASSIGN_OR_RETURN(archive, HashArchive(resolved.path));
  }
  return ModelIdentity{LossText(resolved), ModelHash(resolved, archive)};
}

absl::StatusOr<std::unique_ptr<ports::Learner>> CreateTorchLearner(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options) {
  DFL_RETURN_IF_ERROR(Annotate(CheckDevice(options.device), "device"));
  DFL_RETURN_IF_ERROR(CheckData(data));
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveSpec(spec, ShapeOf(data)));
  std::unique_ptr<ports::Learner> learner;
  DFL_RETURN_IF_ERROR(Guarded("creating the model", [&]() -> absl::Status {
    DFL_ASSIGN_OR_RETURN(learner,
                         Build(spec, resolved, std::move(data), options));
    return absl::OkStatus();
  }));
  return learner;
}

}  // namespace dfl::learner
