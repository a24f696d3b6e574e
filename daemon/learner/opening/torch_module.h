// Opens the shared object that holds LibTorch's learner, dfld-torch.so. It is
// opened when something first needs it, since loading LibTorch takes 58 MB and
// 0.7 s of a processor.
#ifndef DFL_LEARNER_OPENING_TORCH_MODULE_H_
#define DFL_LEARNER_OPENING_TORCH_MODULE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/learner/catalogue/torch_interface.h"

namespace dfl::learner {

// The variable of the environment that names the file, in place of all others:
// for tests, and for a LibTorch learner that lies elsewhere.
inline constexpr char kTorchModuleVariable[] = "DFL_TORCH_MODULE";

// Files that may be it, in the order in which they are tried: where the
// variable says; else beside the running program, as in a build tree, and in
// the folder of libraries where it was installed, by its place relative to the
// program. So neither an RPATH nor the prefix matters.
std::vector<std::string> TorchModulePlaces();

// Opens the first of `places` that is there, for good. Every call gives the
// same; an error is not remembered, so what was missing may be installed
// meanwhile. Thread-safe.
// Errors: FAILED_PRECONDITION when none is there, when it or LibTorch cannot be
// loaded, or when it is of another build; the text names the files and what to
// install.
absl::StatusOr<const TorchInterface*> OpenTorchModule(
    const std::vector<std::string>& places);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_OPENING_TORCH_MODULE_H_
