// A node at a boundary, as one value: all that it needs to go on from there as
// if nothing had happened. What is kept elsewhere is not in it: the plan and
// the wanted phase (keeper), the data, the identity. Nor is what protects a
// secret.
#ifndef DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_H_
#define DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

// Everything but the vectors.
struct CheckpointHead {
  std::string node;
  std::string run_id;
  uint64_t plan_version = 0;
  core::ContractDigest contract{};
  std::string algorithm;  // its name in the catalogue
  int64_t step = 0;  // Algorithm::step(), by which nodes compare themselves
  core::Pace pace;   // the same, as people count
  int64_t idle = 0;  // Algorithm::idle()
  // Of mass, and with whom some was exchanged in it; 0: none is given.
  uint64_t tracker_epoch = 0;
  std::vector<std::string> partners;  // sorted
  core::DecisionsState decisions;
  int64_t gradients = 0;  // that came to something; seeds dropout
  // Nullopt: the learner draws no mini-batches.
  std::optional<ports::BatchPosition> position;
  core::EpochCount::State epochs;
  // By the machine's clock, for people alone. The epoch: not told.
  absl::Time written = absl::UnixEpoch();

  friend bool operator==(const CheckpointHead& a, const CheckpointHead& b) {
    return a.node == b.node && a.run_id == b.run_id &&
           a.plan_version == b.plan_version && a.contract == b.contract &&
           a.algorithm == b.algorithm && a.step == b.step && a.pace == b.pace &&
           a.idle == b.idle && a.tracker_epoch == b.tracker_epoch &&
           a.partners == b.partners && a.decisions == b.decisions &&
           a.gradients == b.gradients && a.position == b.position &&
           a.epochs == b.epochs && a.written == b.written;
  }
};

struct Checkpoint {
  CheckpointHead head;
  SnapshotPtr model;    // never null; shared with what is sent of it
  FlatVector gradient;  // [n], the last one
  core::AlgorithmState algorithm;
};

// Where checkpoints are kept. store/checkpoint_files.h has the one that is
// used.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Writes `checkpoint`. The last `keep` of all that were written stay, as
  // core::CheckpointSpec::keep has it. Off the loop, one call at a time.
  // Errors: as ports::FileWriter::Commit; all that were there stay.
  virtual absl::Status Write(const Checkpoint& checkpoint, int64_t keep) = 0;

  // The heads of the whole ones, the one that was written last first. What is
  // broken, or of a newer dfld, is set aside and named in `notes`.
  virtual std::vector<CheckpointHead> List(std::vector<std::string>& notes) = 0;

  // The one at `step` of the run `run_id`.
  // Errors: NOT_FOUND; DATA_LOSS says in what way it is broken.
  virtual absl::StatusOr<Checkpoint> Read(const std::string& run_id,
                                          int64_t step) = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CHECKPOINTS_CHECKPOINT_H_
