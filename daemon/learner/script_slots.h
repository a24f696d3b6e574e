// Where a TorchScript model keeps its trained tensors and float buffers. A
// model may assign to a name (`self.mean = 0.9 * self.mean + ...`) instead of
// changing the tensor's values, and the name then stands for another tensor
// than the one that is bound to the node's vectors.
#ifndef DFL_LEARNER_SCRIPT_SLOTS_H_
#define DFL_LEARNER_SCRIPT_SLOTS_H_

#include <torch/csrc/jit/api/module.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/learner/module.h"

namespace dfl::learner {

// Thread-compatible. Members throw what LibTorch throws.
class ScriptSlots {
 public:
  // Names as named_parameters() and named_buffers() of `module` give them.
  ScriptSlots(const torch::jit::Module& module,
              const std::vector<NamedTensor>& parameters,
              const std::vector<NamedTensor>& buffers);

  // As Module::TakeBack.
  absl::Status TakeBack(Module::Assigned assigned);

 private:
  struct Slot {
    NamedTensor bound;
    bool trained = false;
    torch::jit::ObjectPtr owner;
    size_t index = 0;  // of the owner's attributes
  };
  void Add(const torch::jit::Module& module, const NamedTensor& named,
           bool trained);

  std::vector<Slot> slots_;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_SCRIPT_SLOTS_H_
