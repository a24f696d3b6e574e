// Model files for control: a snapshot as a readable file, and a file that
// becomes the node's model.
//
// Both forms say what a stranger needs to use the model: a safetensors file in
// its "__metadata__", a TorchScript file in a JSON document beside it.
#ifndef DFL_APP_MODELS_MODEL_FILES_H_
#define DFL_APP_MODELS_MODEL_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/control/backend.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::app {

// Where a model in a file comes from.
struct ModelAbout {
  std::string run_id;
  int64_t step = 0;
  // The node's, with the numbers that its own inputs are scaled by.
  core::DataContract contract;
  // How good it was when it was evaluated, the higher the better; "": untold.
  std::string score;
};

// The key of the data contract in a file's metadata, and of ModelAbout's score.
inline constexpr char kContractKey[] = "dfl.contract";
inline constexpr char kScoreKey[] = "dfl.score";

// What a file's metadata says, as a JSON document.
std::string DescriptionOf(const ports::ModelInfo& model,
                          const ModelAbout& about);

// `snapshot` as a safetensors file with the module's names and shapes, read in
// place. `others` are the values of model.others, in their order.
absl::StatusOr<std::unique_ptr<control::ModelSource>> MakeSafetensorsSource(
    const ports::ModelInfo& model, runtime::SnapshotPtr snapshot,
    std::vector<std::string> others, const ModelAbout& about);

// A file that is in memory already, and what it is.
std::unique_ptr<control::ModelSource> MakeBytesSource(std::string bytes,
                                                      int64_t step,
                                                      std::string description);

// Hands the checked model, or parts of it, to the node; `done` gets its step.
using ReplaceModel =
    std::function<void(std::shared_ptr<const runtime::Snapshot>,
                       runtime::ModelParts, control::Done<int64_t> done)>;

// Takes a safetensors file for `model`, as `request` wants it: see
// store/model_import.h. A file that has a data contract must have the model's:
// see CheckFileContract.
absl::StatusOr<std::unique_ptr<control::ModelSink>> MakeSafetensorsSink(
    ports::ModelInfo model, const control::ImportRequest& request,
    ReplaceModel replace);

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_MODEL_FILES_H_
