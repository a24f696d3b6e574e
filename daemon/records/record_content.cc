#include "daemon/records/record_content.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/frames.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

constexpr size_t kNamesInSummary = 8;
constexpr size_t kReasonInSummary = 200;

absl::string_view PhaseName(runtime::DesiredPhase phase) {
  switch (phase) {
    case runtime::DesiredPhase::kIdle:
      break;
    case runtime::DesiredPhase::kTraining:
      return "training";
    case runtime::DesiredPhase::kPaused:
      return "paused";
    case runtime::DesiredPhase::kStopped:
      return "stopped";
  }
  return "idle";
}

// What a person wrote must not forge lines of a log.
std::string OneLine(absl::string_view text) {
  std::string line(text.substr(0, kReasonInSummary));
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  if (text.size() > kReasonInSummary) line += "...";
  return line;
}

template <typename Message>
absl::Status Parse(absl::string_view content, const char* what,
                   Message* message) {
  if (static_cast<int64_t>(content.size()) > kMaxOrderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", content.size(), " bytes; allowed: at most ",
                     kMaxOrderBytes));
  }
  if (!message->ParseFromArray(content.data(),
                               static_cast<int>(content.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " cannot be read: its bytes are damaged"));
  }
  if (message->GetReflection()->GetUnknownFields(*message).empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has fields that this node does not know; upgrade this node"));
}

absl::StatusOr<runtime::DesiredPhase> ParsePhase(pb::WantedPhase phase) {
  switch (phase) {
    case pb::WANTED_PHASE_TRAINING:
      return runtime::DesiredPhase::kTraining;
    case pb::WANTED_PHASE_PAUSED:
      return runtime::DesiredPhase::kPaused;
    case pb::WANTED_PHASE_STOPPED:
      return runtime::DesiredPhase::kStopped;
    default:
      return absl::InvalidArgumentError(absl::StrCat("the order's phase is ",
                                                     static_cast<int>(phase),
                                                     "; known are 1 to 3"));
  }
}

absl::Status CheckRunId(const std::string& run_id) {
  bool printable = true;
  for (const char c : run_id) {
    printable = printable && absl::ascii_isprint(static_cast<unsigned char>(c));
  }
  if (!run_id.empty() && printable &&
      static_cast<int64_t>(run_id.size()) <= ports::kMaxNameBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the order is for run \"",
                   absl::CHexEscape(run_id.substr(0, ports::kMaxNameBytes)),
                   "\"; a run has a name of 1 to ", ports::kMaxNameBytes,
                   " bytes of printable ASCII"));
}

}  // namespace

bool IsKnownKind(int32_t kind) {
  return kind >= static_cast<int32_t>(RecordKind::kPlan) &&
         kind <= static_cast<int32_t>(RecordKind::kBan);
}

absl::string_view KindName(int32_t kind) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPlan:
      return "plan";
    case RecordKind::kPhase:
      return "phase";
    case RecordKind::kBan:
      return "ban";
  }
  return "unknown";
}

std::string ToContent(const PhaseOrder& order) {
  DFL_CHECK(order.phase != runtime::DesiredPhase::kIdle);
  pb::PhaseOrder message;
  switch (order.phase) {
    case runtime::DesiredPhase::kIdle:
    case runtime::DesiredPhase::kTraining:
      message.set_phase(pb::WANTED_PHASE_TRAINING);
      break;
    case runtime::DesiredPhase::kPaused:
      message.set_phase(pb::WANTED_PHASE_PAUSED);
      break;
    case runtime::DesiredPhase::kStopped:
      message.set_phase(pb::WANTED_PHASE_STOPPED);
      break;
  }
  for (const std::string& node : order.nodes) message.add_nodes(node);
  message.set_run_id(order.run_id);
  return message.SerializeAsString();
}

std::string ToContent(const BanOrder& order) {
  pb::BanOrder message;
  message.set_banned(order.banned);
  message.set_reason(order.reason);
  return message.SerializeAsString();
}

absl::StatusOr<PhaseOrder> ParsePhaseOrder(absl::string_view content) {
  pb::PhaseOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, "the order of a phase", &message));
  PhaseOrder order;
  DFL_ASSIGN_OR_RETURN(order.phase, ParsePhase(message.phase()));
  DFL_RETURN_IF_ERROR(CheckRunId(message.run_id()));
  order.run_id = message.run_id();
  if (static_cast<size_t>(message.nodes_size()) > kMaxOrderedNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order of a phase names ", message.nodes_size(),
                     " nodes; allowed: at most ", kMaxOrderedNodes,
                     ", or none, which is all"));
  }
  for (const std::string& node : message.nodes()) {
    DFL_RETURN_IF_ERROR(
        Annotate(ValidateNodeName(node), "the order of a phase"));
    order.nodes.push_back(node);
  }
  return order;
}

absl::StatusOr<BanOrder> ParseBanOrder(absl::string_view content) {
  pb::BanOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, "the order of a ban", &message));
  if (message.reason().size() > kMaxReasonBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the reason of a ban has ", message.reason().size(),
                     " bytes; allowed: at most ", kMaxReasonBytes));
  }
  return BanOrder{message.banned(), message.reason()};
}

std::string Summary(int32_t kind, absl::string_view content) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPlan:
      return absl::StrCat(content.size(), " bytes");
    case RecordKind::kPhase: {
      const absl::StatusOr<PhaseOrder> order = ParsePhaseOrder(content);
      if (!order.ok()) break;
      const absl::string_view phase = PhaseName(order->phase);
      if (order->nodes.empty()) return absl::StrCat(phase, ": all");
      const bool many = order->nodes.size() > kNamesInSummary;
      return absl::StrCat(
          phase, ": ",
          absl::StrJoin(
              absl::MakeConstSpan(order->nodes).subspan(0, kNamesInSummary),
              ", "),
          many ? absl::StrCat(" and ", order->nodes.size() - kNamesInSummary,
                              " more")
               : "");
    }
    case RecordKind::kBan: {
      const absl::StatusOr<BanOrder> order = ParseBanOrder(content);
      if (!order.ok()) break;
      return absl::StrCat(order->banned ? "banned" : "let in again",
                          order->reason.empty() ? "" : ": ",
                          OneLine(order->reason));
    }
  }
  return "";
}

}  // namespace dfl::records
