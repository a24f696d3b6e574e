// Turns LibTorch's exceptions into statuses. Every call into LibTorch from the
// learner's interface goes through Guarded.
#ifndef DFL_LEARNER_TORCH_ERRORS_H_
#define DFL_LEARNER_TORCH_ERRORS_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dfl::learner {

// Runs `body` and returns its status. An exception of LibTorch becomes INTERNAL
// "`what`: the operator's message", or RESOURCE_EXHAUSTED if memory ran out.
absl::Status Guarded(absl::string_view what,
                     const std::function<absl::Status()>& body);

// INVALID_ARGUMENT for a file that LibTorch cannot read; `status` is Guarded's.
absl::Status NotTorchScript(const absl::Status& status);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TORCH_ERRORS_H_
