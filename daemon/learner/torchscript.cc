#include "daemon/learner/torchscript.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/script.h>

#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/archive_hash.h"
#include "daemon/learner/script_modes.h"
#include "daemon/learner/script_slots.h"
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
  DFL_ASSIGN_OR_RETURN(loaded.hash, HashArchive(path));
  const absl::Status status = Guarded(path, [&] {
    loaded.module = torch::jit::load(path, device);
    return CheckFile(path, loaded.module);
  });
  if (absl::IsInternal(status)) return NotTorchScript(status);
  DFL_RETURN_IF_ERROR(status);
  return loaded;
}

// The name that safetensors files have for it; "" where they have none.
std::string DtypeName(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "F64";
    case at::kFloat:
      return "F32";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      return "";
  }
}

std::string BytesOf(const at::Tensor& tensor) {
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
  return std::string(static_cast<const char*>(plain.data_ptr()),
                     plain.nbytes());
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

std::vector<NamedTensor> TrainedParameters(const torch::jit::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : module.named_parameters()) {
    if (named.value.requires_grad()) {
      tensors.push_back({named.name, named.value});
    }
  }
  return tensors;
}

bool IsBound(const NamedTensor& buffer, const ScriptModes& modes) {
  return buffer.tensor.is_floating_point() && !modes.IsConstant(buffer.name);
}

std::vector<NamedTensor> BoundBuffers(const torch::jit::Module& module,
                                      const ScriptModes& modes) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : module.named_buffers()) {
    const NamedTensor buffer{named.name, named.value};
    if (IsBound(buffer, modes)) tensors.push_back(buffer);
  }
  return tensors;
}

// Frozen parameters, integers, and constants of frozen parts.
std::vector<NamedTensor> OtherTensors(const torch::jit::Module& module,
                                      const ScriptModes& modes) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : module.named_parameters()) {
    if (!named.value.requires_grad()) {
      tensors.push_back({named.name, named.value});
    }
  }
  for (const auto& named : module.named_buffers()) {
    const NamedTensor buffer{named.name, named.value};
    if (!IsBound(buffer, modes)) tensors.push_back(buffer);
  }
  return tensors;
}

// What `name` stands for now: forward may have assigned another tensor.
at::Tensor Current(torch::jit::Module module, const std::string& name) {
  std::vector<std::string> path = absl::StrSplit(name, '.');
  const std::string attribute = path.back();
  path.pop_back();
  for (const std::string& part : path) module = module.attr(part).toModule();
  return module.attr(attribute).toTensor();
}

class LoadedScript final : public ScriptModule {
 public:
  LoadedScript(LoadedFile file, std::string path)
      : module_(file.module),
        hash_(std::move(file.hash)),
        path_(std::move(path)),
        modes_(module_),
        parameters_(TrainedParameters(module_)),
        buffers_(BoundBuffers(module_, modes_)),
        slots_(module_, parameters_, buffers_) {
    SetTraining(false);
  }

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input,
                                     const ForwardMode& mode) override {
    if (mode.training != training_) SetTraining(mode.training);
    // Scripted random operators know no generator but the global one.
    if (mode.training) at::manual_seed(mode.dropout_seed);
    // The optimising executor of LibTorch 2.6 breaks on the third step of a
    // scripted matmul and sum.
    const GraphOptimizerEnabledGuard plain(false);
    const torch::jit::IValue value = module_.forward({input});
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor();
    return absl::InvalidArgumentError(absl::StrCat(
        "forward gives a ", value.tagKind(), "; allowed: one tensor"));
  }

  absl::Status TakeBack(Assigned assigned) override {
    return slots_.TakeBack(assigned);
  }

  std::vector<NamedTensor> Parameters() const override { return parameters_; }
  std::vector<NamedTensor> Buffers() const override { return buffers_; }

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
    CopyOut(BoundBuffers(file.module, ScriptModes(file.module)), info.buffers,
            buffers);
    return absl::OkStatus();
  }

  const std::string& archive_hash() const override { return hash_; }

  std::vector<ports::FixedTensor> Others() const override {
    std::vector<ports::FixedTensor> others;
    const std::map<std::string, std::string> aliases = OtherAliases();
    for (const NamedTensor& named : OtherTensors(module_, modes_)) {
      ports::FixedTensor other;
      other.dtype = DtypeName(named.tensor.scalar_type());
      if (other.dtype.empty() || aliases.count(named.name) > 0) continue;
      other.name = named.name;
      other.shape = named.tensor.sizes().vec();
      other.bytes = static_cast<int64_t>(named.tensor.nbytes());
      other.read = [module = module_, name = named.name] {
        return BytesOf(Current(module, name));
      };
      others.push_back(std::move(other));
    }
    return others;
  }

  std::map<std::string, std::string> OtherAliases() const override {
    std::map<std::string, std::string> aliases;
    std::map<std::tuple<const void*, std::vector<int64_t>, at::ScalarType>,
             std::string>
        first;
    for (const NamedTensor& named : OtherTensors(module_, modes_)) {
      if (named.tensor.numel() == 0) continue;
      const auto [place, is_new] = first.try_emplace(
          std::make_tuple(named.tensor.data_ptr(), named.tensor.sizes().vec(),
                          named.tensor.scalar_type()),
          named.name);
      if (!is_new) aliases[named.name] = place->second;
    }
    return aliases;
  }

  std::vector<std::string> Warnings() const override {
    std::vector<std::string> warnings;
    if (modes_.forgot_train()) {
      warnings.push_back(absl::StrCat(
          path_,
          ": was saved in evaluation mode as a whole; it is trained in "
          "training mode, but for its frozen parts (call train() before "
          "saving it, and eval() on the parts that are to stay so)"));
    }
    for (const std::string& part : modes_.drifting()) {
      warnings.push_back(absl::StrCat(
          path_, ": ", part,
          " has no trained weights, but was saved in training mode: its "
          "statistics move and are mixed, and it drops out (call eval() on it "
          "before saving, after train() on the model)"));
    }
    for (const NamedTensor& named : OtherTensors(module_, modes_)) {
      if (!DtypeName(named.tensor.scalar_type()).empty()) continue;
      warnings.push_back(absl::StrCat(
          path_, ": ", named.name, " is ",
          c10::toString(named.tensor.scalar_type()),
          ", which safetensors files cannot hold: only an export as "
          "TorchScript has it"));
    }
    return warnings;
  }

  absl::Status Export(const std::vector<at::Tensor>& parameters,
                      const std::vector<at::Tensor>& buffers,
                      const TorchScriptExporter::Sink& sink) override {
    const Lent parameters_lent(parameters_, parameters);
    const Lent buffers_lent(buffers_, buffers);
    modes_.Restore();
    const absl::Status written = Write(module_, sink);
    modes_.Set(training_);
    return written;
  }

 private:
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

  void SetTraining(bool training) {
    modes_.Set(training);
    training_ = training;
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
  ScriptModes modes_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  ScriptSlots slots_;
  bool training_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ScriptModule>> ScriptModule::Load(
    const ResolvedSpec& spec, at::Device device) {
  DFL_ASSIGN_OR_RETURN(LoadedFile file, LoadFile(spec.path, device));
  std::unique_ptr<ScriptModule> module;
  DFL_RETURN_IF_ERROR(Guarded(spec.path, [&] {
    module = std::make_unique<LoadedScript>(std::move(file), spec.path);
    return absl::OkStatus();
  }));
  return module;
}

}  // namespace dfl::learner
