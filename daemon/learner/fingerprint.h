// The identity of a model: nodes with different fingerprints never mix.
// Torch-free.
#ifndef DFL_LEARNER_FINGERPRINT_H_
#define DFL_LEARNER_FINGERPRINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/learner/model_spec.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// SHA-256 over the spec, the names, shapes and dtypes of parameters and
// buffers and, for TorchScript, the hash of the file; 64 hexadecimal digits.
// The path of the file is not in it.
std::string Fingerprint(const ResolvedSpec& spec, const ports::ModelInfo& info,
                        absl::string_view file_hash);

// SHA-256 of the bytes of a file, 64 hexadecimal digits.
// Errors: NOT_FOUND, INVALID_ARGUMENT (a folder), PERMISSION_DENIED,
// UNAVAILABLE; the text names the path.
absl::StatusOr<std::string> HashFile(const std::string& path);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_FINGERPRINT_H_
