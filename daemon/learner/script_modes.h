// Which parts of a TorchScript model follow the learner from training to
// evaluation and back, and which keep the mode they were saved in.
//
// A part (the model itself or a module in it) with an attribute `training`:
//   - saved in training mode, follows;
//   - saved in evaluation mode (`part.eval()`), keeps it, as the one who saved
//     it chose: a frozen backbone, or a batch normalisation whose statistics
//     are not to move.
// A model all of whose parts were saved in evaluation mode is one whose owner
// forgot `train()`: it follows as a whole, but for parts that are frozen, and
// all in them. Frozen is a part that has tensors of its own or below, none of
// them trained.
#ifndef DFL_LEARNER_SCRIPT_MODES_H_
#define DFL_LEARNER_SCRIPT_MODES_H_

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace dfl::learner {

// Thread-compatible. Members throw what LibTorch throws.
class ScriptModes {
 public:
  // The model as it was saved. Modes do not change yet.
  explicit ScriptModes(const torch::jit::Module& module);

  // Training or evaluation, for the parts that follow.
  void Set(bool training);
  // As saved.
  void Restore();

  // Whether every part was saved in evaluation mode, and one follows now.
  bool forgot_train() const { return forgot_train_; }

  // Parts that hold frozen weights and buffers, but were saved in training mode
  // and follow: their statistics move. Not those in one that is named. "": the
  // model as a whole.
  const std::vector<std::string>& drifting() const { return drifting_; }

  // Whether the tensor of this name belongs to a frozen part that keeps
  // evaluation mode as a whole. Its values are constants then.
  bool IsConstant(absl::string_view tensor) const;

 private:
  struct Part {
    std::string name;
    torch::jit::Module module;
    bool saved = false;  // in training mode
    bool follows = false;
    bool frozen = false;
  };

  std::vector<Part> parts_;  // with an attribute `training`
  std::vector<std::string> constant_;
  std::vector<std::string> drifting_;
  bool forgot_train_ = false;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_SCRIPT_MODES_H_
