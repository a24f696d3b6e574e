#include "daemon/learner/flat_binding.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::learner {
namespace {

at::Tensor Over(absl::Span<float> memory) {
  return at::from_blob(memory.data(), {static_cast<int64_t>(memory.size())},
                       at::kFloat);
}

// The part of `flat` at `offset` in the shape of `like`.
at::Tensor View(const at::Tensor& flat, int64_t offset,
                const at::Tensor& like) {
  return flat.narrow(0, offset, like.numel()).view(like.sizes());
}

absl::Status CheckTensor(const NamedTensor& named, const char* what) {
  const at::Tensor& tensor = named.tensor;
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", named.name,
                     " is sparse or quantised; allowed: dense float32"));
  }
  if (tensor.scalar_type() != at::kFloat) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " ", named.name, " has dtype ",
        c10::toString(tensor.scalar_type()),
        "; allowed: float32 (convert the model with .float() before saving, "
        "or freeze the parameter)"));
  }
  return absl::OkStatus();
}

// First and last byte.
std::pair<const char*, const char*> Extent(const at::Tensor& tensor) {
  const char* begin = static_cast<const char*>(tensor.data_ptr());
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {begin, begin + (last + 1) * static_cast<int64_t>(sizeof(float))};
}

}  // namespace

absl::StatusOr<FlatBinding> FlatBinding::Create(
    const std::vector<NamedTensor>& parameters,
    const std::vector<NamedTensor>& buffers) {
  FlatBinding binding;
  DFL_ASSIGN_OR_RETURN(binding.parameters_, Lay(parameters, "parameter"));
  DFL_ASSIGN_OR_RETURN(binding.buffers_, Lay(buffers, "buffer"));
  return binding;
}

absl::StatusOr<FlatBinding::Layout> FlatBinding::Lay(
    const std::vector<NamedTensor>& tensors, const char* what) {
  Layout layout;
  for (const NamedTensor& named : tensors) {
    DFL_RETURN_IF_ERROR(CheckTensor(named, what));
    const at::Tensor& tensor = named.tensor;
    int64_t offset = layout.size;
    for (const Slot& slot : layout.slots) {
      if (tensor.numel() == 0 || slot.tensor.numel() == 0) continue;
      const auto [begin, end] = Extent(tensor);
      const auto [slot_begin, slot_end] = Extent(slot.tensor);
      if (std::less_equal<>()(end, slot_begin) ||
          std::less_equal<>()(slot_end, begin)) {
        continue;
      }
      if (tensor.data_ptr() != slot.tensor.data_ptr() ||
          tensor.sizes() != slot.tensor.sizes() ||
          tensor.strides() != slot.tensor.strides()) {
        return absl::InvalidArgumentError(absl::StrCat(
            what, " ", named.name,
            " shares part of its memory with another; allowed: all of it "
            "(tied weights) or none"));
      }
      offset = slot.offset;
      break;
    }
    layout.slots.push_back({tensor, offset});
    if (offset != layout.size) {
      for (const ports::TensorInfo& info : layout.infos) {
        if (info.offset == offset && info.size > 0) {
          layout.aliases[named.name] = info.name;
        }
      }
      continue;
    }
    ports::TensorInfo info;
    info.name = named.name;
    info.shape = tensor.sizes().vec();
    info.offset = offset;
    info.size = tensor.numel();
    layout.size += info.size;
    layout.infos.push_back(std::move(info));
  }
  return layout;
}

std::map<std::string, std::string> FlatBinding::aliases() const {
  std::map<std::string, std::string> aliases = parameters_.aliases;
  aliases.insert(buffers_.aliases.begin(), buffers_.aliases.end());
  return aliases;
}

void FlatBinding::ReadValues(absl::Span<float> parameters,
                             absl::Span<float> buffers) const {
  const c10::AutoGradMode no_gradients(false);
  const auto read = [](const Layout& layout, absl::Span<float> flat) {
    const std::vector<at::Tensor> views = Views(layout, flat);
    for (size_t i = 0; i < views.size(); ++i) {
      views[i].copy_(layout.slots[i].tensor);
    }
  };
  read(parameters_, parameters);
  read(buffers_, buffers);
}

std::vector<at::Tensor> FlatBinding::ParameterViews(
    absl::Span<const float> flat) const {
  return Views(parameters_, flat);
}

std::vector<at::Tensor> FlatBinding::BufferViews(
    absl::Span<const float> flat) const {
  return Views(buffers_, flat);
}

std::vector<at::Tensor> FlatBinding::Views(const Layout& layout,
                                           absl::Span<const float> flat) {
  DFL_CHECK(static_cast<int64_t>(flat.size()) == layout.size);
  const c10::AutoGradMode no_gradients(false);
  // LibTorch has no tensor of constants; nobody writes into these.
  const at::Tensor all =
      Over(absl::MakeSpan(const_cast<float*>(flat.data()), flat.size()));
  std::vector<at::Tensor> views;
  views.reserve(layout.slots.size());
  for (const Slot& slot : layout.slots) {
    views.push_back(View(all, slot.offset, slot.tensor));
  }
  return views;
}

void FlatBinding::Bind(absl::Span<float> parameters, absl::Span<float> gradient,
                       absl::Span<float> buffers, bool staged) {
  DFL_CHECK(static_cast<int64_t>(parameters.size()) == parameters_.size);
  DFL_CHECK(static_cast<int64_t>(gradient.size()) == parameters_.size);
  DFL_CHECK(static_cast<int64_t>(buffers.size()) == buffers_.size);
  const c10::AutoGradMode no_gradients(false);
  staged_ = staged;
  flat_parameters_ = host_parameters_ = Over(parameters);
  flat_gradient_ = host_gradient_ = Over(gradient);
  flat_buffers_ = host_buffers_ = Over(buffers);
  if (staged && !parameters_.slots.empty()) {
    const auto options = parameters_.slots[0].tensor.options();
    flat_parameters_ = at::empty({parameters_.size}, options);
    flat_gradient_ = at::empty({parameters_.size}, options);
    flat_buffers_ = at::empty({buffers_.size}, options);
  }
  for (Slot& slot : parameters_.slots) {
    slot.tensor.set_data(View(flat_parameters_, slot.offset, slot.tensor));
    slot.tensor.mutable_grad() = View(flat_gradient_, slot.offset, slot.tensor);
  }
  for (Slot& slot : buffers_.slots) {
    slot.tensor.set_data(View(flat_buffers_, slot.offset, slot.tensor));
  }
}

void FlatBinding::BeginGradient() {
  BeginEvaluation();
  const c10::AutoGradMode no_gradients(false);
  flat_gradient_.zero_();
}

absl::Status FlatBinding::EndGradient() {
  const float* const values = flat_parameters_.data_ptr<float>();
  const float* const gradient = flat_gradient_.data_ptr<float>();
  for (const Slot& slot : parameters_.slots) {
    if (slot.tensor.numel() == 0) continue;
    const at::Tensor& grad = slot.tensor.grad();
    if (slot.tensor.data_ptr<float>() != values + slot.offset ||
        !grad.defined() || grad.data_ptr<float>() != gradient + slot.offset) {
      return absl::InternalError(
          "the model replaced a trained tensor or its gradient while training; "
          "allowed: models that change them in place only");
    }
  }
  if (staged_) {
    const c10::AutoGradMode no_gradients(false);
    host_gradient_.copy_(flat_gradient_);
    host_buffers_.copy_(flat_buffers_);
  }
  return absl::OkStatus();
}

void FlatBinding::BeginEvaluation() {
  if (!staged_) return;
  const c10::AutoGradMode no_gradients(false);
  flat_parameters_.copy_(host_parameters_);
  flat_buffers_.copy_(host_buffers_);
}

void FlatBinding::Borrow(absl::Span<const float> parameters,
                         absl::Span<const float> buffers) {
  const std::vector<at::Tensor> trained = ParameterViews(parameters);
  const std::vector<at::Tensor> others = BufferViews(buffers);
  const c10::AutoGradMode no_gradients(false);
  borrowed_ = true;
  // On another device the values are copied over the flat ones there, which
  // Return copies back.
  for (size_t i = 0; i < trained.size(); ++i) {
    at::Tensor& tensor = parameters_.slots[i].tensor;
    staged_ ? (void)tensor.copy_(trained[i]) : tensor.set_data(trained[i]);
  }
  for (size_t i = 0; i < others.size(); ++i) {
    at::Tensor& tensor = buffers_.slots[i].tensor;
    staged_ ? (void)tensor.copy_(others[i]) : tensor.set_data(others[i]);
  }
}

void FlatBinding::Return() {
  if (!std::exchange(borrowed_, false)) return;
  if (staged_) {
    BeginEvaluation();
    return;
  }
  const c10::AutoGradMode no_gradients(false);
  for (Slot& slot : parameters_.slots) {
    slot.tensor.set_data(View(flat_parameters_, slot.offset, slot.tensor));
  }
  for (Slot& slot : buffers_.slots) {
    slot.tensor.set_data(View(flat_buffers_, slot.offset, slot.tensor));
  }
}

}  // namespace dfl::learner
