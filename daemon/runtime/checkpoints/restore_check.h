// Whether a checkpoint that a person brings is one that a node may go on from:
// it must be of this very node, of the plan in force, and within every bound.
#ifndef DFL_RUNTIME_CHECKPOINTS_RESTORE_CHECK_H_
#define DFL_RUNTIME_CHECKPOINTS_RESTORE_CHECK_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/checkpoints/checkpoint.h"

namespace dfl::runtime {

// What a checkpoint must be of.
struct RestoreTarget {
  std::string node;
  // Of the plan in force; "": there is none, and what follows says nothing.
  std::string run_id;
  uint64_t plan_version = 0;
  std::string algorithm;
  core::ContractDigest contract{};
  uint64_t parameters = 0;
  uint64_t buffers = 0;
};

// Lengths of a checkpoint's vectors, as its file announces them.
struct CheckpointLengths {
  uint64_t parameters = 0;
  uint64_t buffers = 0;
};

// No honest node counts further.
inline constexpr int64_t kMostCounted = int64_t{1} << 53;

// Errors: INVALID_ARGUMENT names the count.
inline absl::Status CheckCounts(const CheckpointHead& head) {
  const int64_t most = std::max({head.step, head.pace.steps, head.pace.rounds,
                                 head.idle, head.gradients});
  if (most > kMostCounted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint counts to ", most, "; allowed: up to ",
                     kMostCounted, "; give one that a node wrote"));
  }
  // Further ahead than this no neighbour follows (guards/epoch_guard.h).
  if (head.tracker_epoch > ports::kMaxTrackerEpoch / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint is of tracker epoch ", head.tracker_epoch,
                     "; allowed: up to ", ports::kMaxTrackerEpoch / 2,
                     "; give one that a node wrote"));
  }
  return absl::OkStatus();
}

// `other_version`: one of another version of the plan will do; its model and
// its counts are taken, and the algorithm begins anew.
// Errors: FAILED_PRECONDITION names both versions, and what helps.
inline absl::Status CheckPlan(const CheckpointHead& head,
                              const RestoreTarget& here, bool other_version) {
  const std::string of =
      absl::StrCat("the checkpoint is of run ", head.run_id, ", version ",
                   head.plan_version, " of its plan");
  if (here.run_id.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        of,
        ", and no plan is in force here; bring that plan into force first: "
        "dflctl plan apply FILE"));
  }
  if (head.run_id != here.run_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        of, ", and run ", here.run_id, ", version ", here.plan_version,
        ", is in force here; bring the plan of run ", head.run_id,
        " into force first: dflctl plan apply FILE"));
  }
  if (other_version) return absl::OkStatus();
  if (head.plan_version != here.plan_version) {
    return absl::FailedPreconditionError(absl::StrCat(
        of, ", and version ", here.plan_version,
        " is in force here; with --force its model and its counts are taken, "
        "and the algorithm begins anew",
        head.plan_version > here.plan_version
            ? absl::StrCat("; or bring version ", head.plan_version,
                           " into force first: dflctl plan apply FILE")
            : ""));
  }
  if (head.algorithm != here.algorithm) {
    return absl::FailedPreconditionError(absl::StrCat(
        of, " with algorithm ", head.algorithm, ", and here that version has ",
        here.algorithm,
        "; with --force its model and its counts are taken, and the algorithm "
        "begins anew"));
  }
  return absl::OkStatus();
}

// Errors: FAILED_PRECONDITION names the fields with both hashes, and the
// settings that say them.
inline absl::Status CheckContract(const core::ContractDigest& file,
                                  const core::ContractDigest& here) {
  std::string differs;
  for (const core::ContractField field : core::Differences(file, here)) {
    const auto place = static_cast<size_t>(field);
    absl::StrAppendFormat(&differs, "%s%s is %016x there and %016x here (%s)",
                          differs.empty() ? "" : "; ", core::FieldName(field),
                          file[place], here[place], core::FieldCure(field));
  }
  if (differs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("data or model mean something else than where the "
                   "checkpoint was written: ",
                   differs, "; mend that on this node first"));
}

// Errors: FAILED_PRECONDITION and INVALID_ARGUMENT name both sides, and what
// helps.
inline absl::Status CheckRestorable(const CheckpointHead& head,
                                    const CheckpointLengths& lengths,
                                    const RestoreTarget& here,
                                    bool other_version) {
  if (head.node != here.node) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint is of node ", head.node, ", and this node is ",
        here.node,
        "; it can be restored on a node of that name alone. The model alone "
        "can be had with `dflctl model import`, of a file that `dflctl model "
        "export` wrote there"));
  }
  DFL_RETURN_IF_ERROR(CheckPlan(head, here, other_version));
  DFL_RETURN_IF_ERROR(CheckContract(head.contract, here.contract));
  if (lengths.parameters != here.parameters ||
      lengths.buffers != here.buffers) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint has ", lengths.parameters,
                     " parameters and ", lengths.buffers,
                     " buffer values, and the model here has ", here.parameters,
                     " and ", here.buffers, "; give one that this node wrote"));
  }
  return CheckCounts(head);
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CHECKPOINTS_RESTORE_CHECK_H_
