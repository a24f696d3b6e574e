// What identifies a model in the data contract. Nodes whose models have
// different hashes never mix.
#ifndef DFL_LEARNER_MODEL_HASH_H_
#define DFL_LEARNER_MODEL_HASH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/learner/model_spec.h"

namespace dfl::learner {

// SHA-256, 64 hexadecimal digits, of the structure (StructureText) and, for
// TorchScript, of what HashArchive gives.
std::string ModelHash(const ResolvedSpec& spec, absl::string_view archive_hash);

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

#endif  // DFL_LEARNER_MODEL_HASH_H_
