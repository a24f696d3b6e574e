// What records say, by their kind. Counterpart of the messages in
// proto/dfl/record/v1/record.proto.
#ifndef DFL_RECORDS_RECORD_CONTENT_H_
#define DFL_RECORDS_RECORD_CONTENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/runtime/keeper/run_state.h"

namespace dfl::records {

// The numbers are those of dfl.record.v1.RecordKind.
enum class RecordKind {
  kPlan = 1,    // the content is the plan's YAML, complete
  kPhase = 2,   // a PhaseOrder
  kBan = 3,     // a BanOrder; the subject is the identity, as tls::ToUri
  kDrain = 4,   // a DrainOrder; the subject is the node's name
  kLabels = 5,  // a LabelsOrder; the subject is the node's name
};

// Of the content.
inline constexpr int64_t kMaxPlanBytes = 8 << 20;
inline constexpr int64_t kMaxOrderBytes = 512 << 10;
inline constexpr size_t kMaxOrderedNodes = 4096;
inline constexpr size_t kMaxReasonBytes = 4 << 10;

bool IsKnownKind(int32_t kind);
// "plan", "phase", "ban", "drain", "labels"; "unknown" for another number.
absl::string_view KindName(int32_t kind);

struct PhaseOrder {
  // kTraining, kPaused or kStopped.
  runtime::DesiredPhase phase = runtime::DesiredPhase::kTraining;
  // It is for whoever is named or has one of the labels, "site=north"; both
  // empty: for all.
  std::vector<std::string> nodes;
  std::string run_id;  // the run that it is for
  std::vector<std::string> labels = {};
};

struct BanOrder {
  bool banned = false;  // false: let in again
  std::string reason;   // for people; may be empty
};

struct DrainOrder {
  bool draining = false;  // false: takes part again
  std::string reason;     // for people; may be empty
};

struct LabelsOrder {
  std::map<std::string, std::string> labels;  // all that the node has
  bool from_settings = false;  // those of the settings count; `labels` is empty
};

// "site=north".
std::string LabelText(absl::string_view key, absl::string_view value);
// Whether `text` is a label in that form: both are names as those of nodes.
// Errors: INVALID_ARGUMENT says which part is wrong.
absl::Status ValidateLabel(absl::string_view text);

// The order must be valid.
std::string ToContent(const PhaseOrder& order);
std::string ToContent(const BanOrder& order);
std::string ToContent(const DrainOrder& order);
std::string ToContent(const LabelsOrder& order);

// The inverse of ToContent.
// Errors: INVALID_ARGUMENT for bytes that are no such order, an unknown field,
// an unknown phase, a missing run, a name that no node can have, or too many or
// too much of anything.
absl::StatusOr<PhaseOrder> ParsePhaseOrder(absl::string_view content);
absl::StatusOr<BanOrder> ParseBanOrder(absl::string_view content);
absl::StatusOr<DrainOrder> ParseDrainOrder(absl::string_view content);
absl::StatusOr<LabelsOrder> ParseLabelsOrder(absl::string_view content);

// What a member says of the plan that it has: the first 8 bytes of the SHA-256
// of its document, as a record holds it. Never 0.
uint64_t PlanMark(absl::string_view yaml);

// What a record says in a few words, on one line: "paused: box-1, box-2",
// "banned: stolen". The content must be valid.
std::string Summary(int32_t kind, absl::string_view content);

}  // namespace dfl::records

#endif  // DFL_RECORDS_RECORD_CONTENT_H_
