// Ties a module's tensors to flat vectors: parameters and floating-point
// buffers become views of them, gradients views of the gradient vector.
#ifndef DFL_LEARNER_FLAT_BINDING_H_
#define DFL_LEARNER_FLAT_BINDING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/learner/module.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// Call order: Create; Bind once; then for each gradient BeginGradient, forward
// and backward, EndGradient; for each evaluation BeginEvaluation. Members throw
// what LibTorch throws.
class FlatBinding {
 public:
  // Lays the tensors out in the given order. A tensor that shares its memory
  // with an earlier one (tied weights) shares its place.
  // Errors: INVALID_ARGUMENT for a tensor that is not dense float32, or that
  // partly overlaps an earlier one; the text names it and what is allowed.
  static absl::StatusOr<FlatBinding> Create(
      const std::vector<NamedTensor>& parameters,
      const std::vector<NamedTensor>& buffers);

  const std::vector<ports::TensorInfo>& parameters() const {
    return parameters_.infos;
  }
  const std::vector<ports::TensorInfo>& buffers() const {
    return buffers_.infos;
  }
  // Names of tied tensors, and the name above that each stands for.
  std::map<std::string, std::string> aliases() const;
  int64_t parameter_count() const { return parameters_.size; }
  int64_t buffer_count() const { return buffers_.size; }

  // Copies the values that the tensors have, before Bind, into flat vectors of
  // the sizes above (checked).
  void ReadValues(absl::Span<float> parameters,
                  absl::Span<float> buffers) const;

  // Sizes are those above (checked), and the memory outlives the tensors. With
  // `staged` the views are of vectors on the tensors' device, which are copied
  // as a whole from and to the given ones. Values do not change.
  void Bind(absl::Span<float> parameters, absl::Span<float> gradient,
            absl::Span<float> buffers, bool staged);

  // `flat` (sizes as above, checked) as tensors: one for each tensor of Create,
  // in the same order and shapes. They may be read while `flat` lives.
  std::vector<at::Tensor> ParameterViews(absl::Span<const float> flat) const;
  std::vector<at::Tensor> BufferViews(absl::Span<const float> flat) const;

  // Lets the module see the flat values, and sets the gradient to zero.
  void BeginGradient();
  // Makes what backward and forward left appear in the flat gradient and
  // buffers.
  // Errors: INTERNAL when a view was lost.
  absl::Status EndGradient();
  // Lets the module see the flat values.
  void BeginEvaluation();
  // Lets the module see these values (sizes as above, checked) instead of the
  // flat ones, for an evaluation. They must live and not change until Return.
  void Borrow(absl::Span<const float> parameters,
              absl::Span<const float> buffers);
  // Ends Borrow.
  void Return();

 private:
  struct Slot {
    at::Tensor tensor;
    int64_t offset;
  };
  struct Layout {
    std::vector<ports::TensorInfo> infos;
    std::vector<Slot> slots;  // ties included
    std::map<std::string, std::string> aliases;
    int64_t size = 0;
  };

  FlatBinding() = default;
  static absl::StatusOr<Layout> Lay(const std::vector<NamedTensor>& tensors,
                                    const char* what);
  static std::vector<at::Tensor> Views(const Layout& layout,
                                       absl::Span<const float> flat);

  Layout parameters_;
  Layout buffers_;
  bool staged_ = false;
  bool borrowed_ = false;
  at::Tensor host_parameters_;  // views of the given memory
  at::Tensor host_gradient_;
  at::Tensor host_buffers_;
  at::Tensor flat_parameters_;  // what the module's tensors are views of
  at::Tensor flat_gradient_;
  at::Tensor flat_buffers_;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_FLAT_BINDING_H_
