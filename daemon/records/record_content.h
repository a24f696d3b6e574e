// What signed records say, by their kind. Counterpart of the messages in
// proto/dfl/record/v1/record.proto.
#ifndef DFL_RECORDS_RECORD_CONTENT_H_
#define DFL_RECORDS_RECORD_CONTENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/runtime/keeper/run_state.h"

namespace dfl::records {

// The numbers are those of dfl.record.v1.RecordKind.
enum class RecordKind {
  kPlan = 1,   // the content is the plan's YAML, complete
  kPhase = 2,  // a PhaseOrder
  kBan = 3,    // a BanOrder; the subject is the identity, as tls::ToUri
};

// Of the content.
inline constexpr int64_t kMaxPlanBytes = 8 << 20;
inline constexpr int64_t kMaxOrderBytes = 512 << 10;
inline constexpr size_t kMaxOrderedNodes = 4096;
inline constexpr size_t kMaxReasonBytes = 4 << 10;

bool IsKnownKind(int32_t kind);
// "plan", "phase", "ban"; "unknown" for another number.
absl::string_view KindName(int32_t kind);

struct PhaseOrder {
  // kTraining, kPaused or kStopped.
  runtime::DesiredPhase phase = runtime::DesiredPhase::kTraining;
  std::vector<std::string> nodes;  // empty: all
  std::string run_id;              // the run that it is for
};

struct BanOrder {
  bool banned = false;  // false: let in again
  std::string reason;   // for people; may be empty
};

// The order must be valid.
std::string ToContent(const PhaseOrder& order);
std::string ToContent(const BanOrder& order);

// The inverse of ToContent.
// Errors: INVALID_ARGUMENT for bytes that are no such order, an unknown field,
// an unknown phase, a missing run, a name that no node can have, or too many or
// too much of anything.
absl::StatusOr<PhaseOrder> ParsePhaseOrder(absl::string_view content);
absl::StatusOr<BanOrder> ParseBanOrder(absl::string_view content);

// What a record says in a few words, on one line: "paused: box-1, box-2",
// "banned: stolen". The content must be valid.
std::string Summary(int32_t kind, absl::string_view content);

}  // namespace dfl::records

#endif  // DFL_RECORDS_RECORD_CONTENT_H_
