// Model files for control: a snapshot as a readable file, and a file that
// becomes the node's model.
#ifndef DFL_APP_MODEL_FILES_H_
#define DFL_APP_MODEL_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/control/backend.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::app {

// `snapshot` as a safetensors file with the module's names and shapes, read in
// place.
absl::StatusOr<std::unique_ptr<control::ModelSource>> MakeSafetensorsSource(
    const ports::ModelInfo& model, runtime::SnapshotPtr snapshot,
    const std::string& run_id);

// A file that is in memory already.
std::unique_ptr<control::ModelSource> MakeBytesSource(std::string bytes,
                                                      int64_t step);

// Hands the whole, checked model to the node.
using ReplaceModel =
    std::function<void(std::shared_ptr<const runtime::Snapshot>,
                       control::Done<control::ImportResult>)>;

// Takes a safetensors file of exactly `model`'s tensors.
// Errors: RESOURCE_EXHAUSTED when `total_bytes` cannot be such a file's size.
absl::StatusOr<std::unique_ptr<control::ModelSink>> MakeSafetensorsSink(
    const ports::ModelInfo& model, int64_t total_bytes, ReplaceModel replace);

}  // namespace dfl::app

#endif  // DFL_APP_MODEL_FILES_H_
