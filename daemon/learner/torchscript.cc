#include "daemon/learner/torchscript.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/script.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/fingerprint.h"
#include "daemon/learner/losses.h"
#include "daemon/learner/torch_errors.h"

namespace dfl::learner {
namespace {

using torch::jit::GraphOptimizerEnabledGuard;

absl::Status Unfit(const std::string& path, absl::string_view found,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", found, "; allowed: ", allowed));
}

absl::Status CheckFile(const std::string& path,
                       const torch::jit::Module& module) {
  if (!module.find_method("forward").has_value()) {
    return Unfit(path, "has no method forward",
                 "a module whose forward takes one batch");
  }
  for (const auto& named : module.named_parameters()) {
    if (named.value.requires_grad()) return absl::OkStatus();
  }
  return Unfit(path, "has no trained parameters",
               "a module with at least one parameter that requires a gradient "
               "(saved by torch.jit.save, neither frozen nor optimised for "
               "inference)");
}

// Hashes the file before loading it. If the file changes in between, the next
// reader notices.
struct LoadedFile {
  torch::jit::Module module;
  std::string hash;
};

absl::StatusOr<LoadedFile> LoadFile(const std::string& path,
                                    at::Device device) {
  LoadedFile loaded;
  DFL_ASSIGN_OR_RETURN(loaded.hash, HashFile(path));
  const absl::Status status = Guarded(path, [&] {
    loaded.module = torch::jit::load(path, device);
    return CheckFile(path, loaded.module);
  });
  if (absl::IsInternal(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not a usable TorchScript file: ", status.message(),
        "; allowed: a whole file written by torch.jit.save of a version that "
        "this LibTorch reads"));
  }
  DFL_RETURN_IF_ERROR(status);
  return loaded;
}

// Gives tensors of a module other values while it lives. Each gets memory of
// its own: module.deepcopy() takes views of one flat vector for one tensor, and
// a file would hold all of it once a view.
class Lent {
 public:
  Lent(const std::vector<NamedTensor>& tensors,
       const std::vector<at::Tensor>& values) {
    DFL_CHECK(tensors.size() == values.size());
    const c10::AutoGradMode no_gradients(false);
    std::map<const void*, at::Tensor> copies;  // tied tensors stay tied
    for (size_t i = 0; i < tensors.size(); ++i) {
      at::Tensor tensor = tensors[i].tensor;
      at::Tensor& copy = copies[values[i].data_ptr()];
      if (!copy.defined() || copy.sizes() != values[i].sizes()) {
        copy = values[i].clone().to(tensor.device());
      }
      before_.emplace_back(tensor, tensor.detach());
      tensor.set_data(copy);
    }
  }
  ~Lent() {
    const c10::AutoGradMode no_gradients(false);
    // Backwards: a tied tensor may come twice.
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
      it->first.set_data(it->second);
    }
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> before_;
};

class LoadedScript final : public ScriptModule {
 public:
  LoadedScript(LoadedFile file, std::string path, at::Device device)
      : module_(file.module),
        hash_(std::move(file.hash)),
        path_(std::move(path)),
        device_(device) {
    SetTraining(false);
  }

  at::Tensor Forward(const at::Tensor& input,
                     const ForwardMode& mode) override {
    return Run(input, mode).toTensor();
  }

  std::vector<NamedTensor> Parameters() const override {
    return TrainedParameters(module_);
  }
  std::vector<NamedTensor> Buffers() const override {
    return FloatingBuffers(module_);
  }

  absl::Status Initialise(uint64_t /*seed*/, const ports::ModelInfo& info,
                          absl::Span<float> parameters,
                          absl::Span<float> buffers) const override {
    // The file again rather than a copy kept for ever.
    DFL_ASSIGN_OR_RETURN(const LoadedFile file, LoadFile(path_, at::kCPU));
    if (file.hash != hash_) {
      return absl::FailedPreconditionError(absl::StrCat(
          path_, ": changed since it was loaded; restart the node to use it"));
    }
    CopyOut(TrainedParameters(file.module), info.parameters, parameters);
    CopyOut(FloatingBuffers(file.module), info.buffers, buffers);
    return absl::OkStatus();
  }

  const std::string& file_hash() const override { return hash_; }

  absl::Status Export(const std::vector<at::Tensor>& parameters,
                      const std::vector<at::Tensor>& buffers,
                      const TorchScriptExporter::Sink& sink) const override {
    torch::jit::Module module = module_;  // the same one
    const bool was_training = training_;
    const Lent parameters_lent(Parameters(), parameters);
    const Lent buffers_lent(Buffers(), buffers);
    SetTraining(&module, true);  // as torch.jit.save leaves a new module
    const absl::Status written = Write(module, sink);
    SetTraining(&module, was_training);
    return written;
  }

  // Whether the model takes the rows and gives what the loss needs.
  absl::Status Try(const ResolvedSpec& spec) {
    constexpr int64_t kRows = 2;
    std::vector<int64_t> shape = {kRows};
    shape.insert(shape.end(), spec.input.begin(), spec.input.end());
    const c10::AutoGradMode gradients(true);
    const at::Tensor input =
        at::zeros(shape, at::TensorOptions(at::kFloat).device(device_));
    const torch::jit::IValue value = Run(input, ForwardMode());
    if (!value.isTensor()) {
      return Unfit(path_, absl::StrCat("forward gives a ", value.tagKind()),
                   "one tensor");
    }
    const at::Tensor& output = value.toTensor();
    const absl::Status fits = CheckOutputs(
        spec, kRows,
        absl::MakeConstSpan(output.sizes().data(), output.sizes().size()));
    DFL_RETURN_IF_ERROR(Annotate(fits, path_));
    if (output.scalar_type() != at::kFloat) {
      return Unfit(
          path_,
          absl::StrCat("forward gives ", c10::toString(output.scalar_type())),
          "float32");
    }
    if (!output.requires_grad()) {
      return Unfit(path_, "the output of forward depends on no trained tensor",
                   "an output that can be trained");
    }
    return absl::OkStatus();
  }

 private:
  static std::vector<NamedTensor> TrainedParameters(
      const torch::jit::Module& module) {
    std::vector<NamedTensor> tensors;
    for (const auto& named : module.named_parameters()) {
      if (named.value.requires_grad()) {
        tensors.push_back({named.name, named.value});
      }
    }
    return tensors;
  }

  static std::vector<NamedTensor> FloatingBuffers(
      const torch::jit::Module& module) {
    std::vector<NamedTensor> tensors;
    for (const auto& named : module.named_buffers()) {
      if (named.value.is_floating_point()) {
        tensors.push_back({named.name, named.value});
      }
    }
    return tensors;
  }

  static void CopyOut(const std::vector<NamedTensor>& tensors,
                      absl::Span<const ports::TensorInfo> infos,
                      absl::Span<float> flat) {
    const c10::AutoGradMode no_gradients(false);
    size_t next = 0;  // tied tensors have no place of their own
    for (const NamedTensor& named : tensors) {
      if (next == infos.size()) break;
      if (named.name != infos[next].name) continue;
      at::from_blob(flat.data() + infos[next].offset, named.tensor.sizes(),
                    at::kFloat)
          .copy_(named.tensor);
      ++next;
    }
    DFL_CHECK(next == infos.size());
  }

  static void SetTraining(torch::jit::Module* module, bool training) {
    for (torch::jit::Module part : module->modules()) {
      if (part.hasattr("training")) part.setattr("training", training);
    }
  }

  void SetTraining(bool training) {
    SetTraining(&module_, training);
    training_ = training;
  }

  torch::jit::IValue Run(const at::Tensor& input, const ForwardMode& mode) {
    if (mode.training != training_) SetTraining(mode.training);
    // Scripted random operators know no generator but the global one.
    if (mode.training) at::manual_seed(mode.dropout_seed);
    // The optimising executor of LibTorch 2.6 breaks on the third step of a
    // scripted matmul and sum.
    const GraphOptimizerEnabledGuard plain(false);
    return module_.forward({input});
  }

  static absl::Status Write(const torch::jit::Module& module,
                            const TorchScriptExporter::Sink& sink) {
    absl::Status status;
    const auto write = [&](const void* bytes, size_t size) -> size_t {
      if (status.ok()) {
        status = sink(absl::string_view(static_cast<const char*>(bytes), size));
      }
      // Taken even after an error: told of one, LibTorch's writer throws from
      // its destructor and ends the process.
      return size;
    };
    const absl::Status written = Guarded("TorchScript export", [&] {
      torch::jit::ExportModule(module, write);
      return absl::OkStatus();
    });
    return status.ok() ? written : status;
  }

  torch::jit::Module module_;
  std::string hash_;
  std::string path_;
  at::Device device_;
  bool training_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptModule>> ScriptModule::Load(
    const ResolvedSpec& spec, at::Device device) {
  DFL_ASSIGN_OR_RETURN(LoadedFile file, LoadFile(spec.path, device));
  auto module =
      std::make_unique<LoadedScript>(std::move(file), spec.path, device);
  const absl::Status status =
      Guarded(absl::StrCat(spec.path, ": forward on zeros"),
              [&] { return module->Try(spec); });
  if (absl::IsInternal(status)) {
    return absl::InvalidArgumentError(absl::StrCat(
        status.message(), "; allowed: a model that takes float32 [rows, ",
        absl::StrJoin(spec.input, ", "), "]"));
  }
  DFL_RETURN_IF_ERROR(status);
  return module;
}

}  // namespace dfl::learner
