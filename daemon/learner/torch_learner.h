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
// With threads = 1 the bits are the same on one machine, whatever else runs; no
// more is promised (docs/architecture.md). A TorchScript model that draws
// random numbers itself (dropout) takes them from LibTorch's global generator,
// which is therefore seeded anew for each of its gradients; models of ours
// never touch it.
#ifndef DFL_LEARNER_TORCH_LEARNER_H_
#define DFL_LEARNER_TORCH_LEARNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

struct LearnerData {
  explicit LearnerData(data::DatasetView train_rows)
      : train(std::move(train_rows)) {}

  // The node's own rows, at least one.
  data::DatasetView train;
  // Rows of the same shape to evaluate on; empty: no evaluation.
  absl::optional<data::DatasetView> test;
  // Applied to both.
  data::Standardizer standardizer;
  // What the rows mean; the learner fills in task, shape, loss and model. The
  // labels are numbers of its classes.
  core::DataContract contract;
};

struct LearnerOptions {
  // See CheckDevice.
  std::string device = "cpu";
  // LibTorch's intra-op threads, >= 1.
  int threads = 1;
  // The seed of mini-batches and dropout; it differs between nodes.
  uint64_t data_seed = 1;
  // Of the plan: a model from a file is tried with it. >= 1.
  int64_t batch_size = 32;
};

// Whether gradients can be computed on `device`: "cpu"; or "cuda" (the same as
// "cuda:0") or "cuda:N", if LibTorch supports CUDA and finds that GPU.
// Errors: INVALID_ARGUMENT for another text; FAILED_PRECONDITION when the
// device is not available.
absl::Status CheckDevice(const std::string& device);

// The version of LibTorch, such as "2.6.0".
std::string TorchVersion();

// What a data contract says of a model.
struct ModelIdentity {
  std::string loss;   // with all its settings
  std::string model;  // 64 hexadecimal digits
};

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

// Writes the model of a TorchScript learner as a file that LibTorch and PyTorch
// can load. Must not run concurrently with the learner's other calls.
class TorchScriptExporter {
 public:
  virtual ~TorchScriptExporter() = default;

  // Takes the next bytes of the file; an error ends the export.
  using Sink = std::function<absl::Status(absl::string_view)>;

  // Exports the loaded model with `parameters` [n] and `buffers` [b] (a
  // snapshot, or the bound ones) in place of its own. Integer buffers and
  // frozen parameters stay as they are, and so do the modes of the parts. Needs
  // memory for one more model.
  // Errors: INVALID_ARGUMENT for other sizes; the sink's; INTERNAL.
  virtual absl::Status ExportTorchScript(absl::Span<const float> parameters,
                                         absl::Span<const float> buffers,
                                         const Sink& sink) = 0;
};

// The exporter of a learner made by CreateTorchLearner, or null when its model
// is no TorchScript. Lives as long as the learner.
TorchScriptExporter* AsTorchScriptExporter(ports::Learner& learner);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TORCH_LEARNER_H_
