// Learner on LibTorch: the node's models, their gradients and their evaluation.
// This header needs no LibTorch header, and no exception of LibTorch leaves it.
//
// The module's tensors are views of the flat buffers given to Bind: `backward`
// accumulates straight into the node's gradient, and what the algorithm writes
// into the parameters is what the next forward sees. No optimiser; steps are
// the algorithm's. With device "cuda" the module has flat vectors of its own on
// the device and each call makes one copy each way.
//
// A model that normalises by the batch never gets a batch of one row: a last
// batch of one is joined to the batch before (data/batch_sampler.h).
//
// Settings of the process that creating a learner changes: LibTorch's intra-op
// and inter-op threads, OpenBLAS's threads where it is loaded, and glibc's
// limits for giving memory back (process_settings.h). The last learner created
// wins, so one process should give all the same.
//
// With one thread the bits are the same on one machine, whatever else runs; no
// more is promised (docs/architecture.md). A TorchScript model that draws
// random numbers itself (dropout) takes them from LibTorch's global generator,
// which is therefore seeded anew for each of its gradients; models of ours
// never touch it.
#ifndef DFL_LEARNER_TORCH_LEARNER_H_
#define DFL_LEARNER_TORCH_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/learner/catalogue/learner_data.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// Whether gradients can be computed on `device`: "cpu"; or "cuda" (the same as
// "cuda:0") or "cuda:N", if LibTorch supports CUDA and finds that GPU.
// Errors: INVALID_ARGUMENT for another text; FAILED_PRECONDITION when the
// device is not available.
absl::Status CheckDevice(const std::string& device);

// The version of LibTorch, such as "2.6.0".
std::string TorchVersion();

// Of the model that `spec` names, for a task and rows of this shape, which may
// not be final. CreateTorchLearner's contract says the same. Reads a
// TorchScript file and builds no model.
// Errors: as CreateTorchLearner, as far as that tells.
absl::StatusOr<ModelIdentity> IdentifyModel(const core::ModelSpec& spec,
                                            core::Task task,
                                            const std::vector<int64_t>& shape);

// Builds the model that `spec` names for this data. A TorchScript file is read,
// and tried on this node's rows (trial.h).
// Errors, naming what was found and what is allowed:
//   INVALID_ARGUMENT     the spec is wrong, alone or for this data; a file is
//                        no TorchScript, has nothing to train, has a trained
//                        tensor that is not float32, cannot be used for the
//                        node's rows in one of the two modes, or needs batches
//                        of two rows where there is one
//   NOT_FOUND, PERMISSION_DENIED  the file
//   FAILED_PRECONDITION  as CheckDevice
//   RESOURCE_EXHAUSTED   memory
//   INTERNAL             LibTorch failed; the text is the operator's
absl::StatusOr<std::unique_ptr<ports::Learner>> CreateTorchLearner(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TORCH_LEARNER_H_
