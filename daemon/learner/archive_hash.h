// What identifies a TorchScript file in the data contract (ModelHash of
// catalogue/learner_data.h).
#ifndef DFL_LEARNER_ARCHIVE_HASH_H_
#define DFL_LEARNER_ARCHIVE_HASH_H_

#include <string>

#include "absl/status/statusor.h"

namespace dfl::learner {

// SHA-256, 64 hexadecimal digits, of what a TorchScript archive holds: the
// names of its records, without the name of the archive, and their bytes, in
// the order of the names. That is code, structure, constants and the values of
// all tensors.
//
// Some records do not change what the model computes, and are left out: the
// version of the format, byte order and serialisation id, where the lines of
// the source stood, and extra files. So a model has one hash, however often,
// under whatever name and by whichever version of LibTorch it was saved, as
// long as code and tensors are the same.
// Errors: NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE: the file;
// INVALID_ARGUMENT: it is a folder, or no archive. The text names the path.
absl::StatusOr<std::string> HashArchive(const std::string& path);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_ARCHIVE_HASH_H_
