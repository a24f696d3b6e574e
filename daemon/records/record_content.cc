#include "daemon/records/record_content.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/frames.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;

constexpr size_t kNamesInSummary = 8;
constexpr size_t kReasonInSummary = 200;
constexpr size_t kNameInError = 100;

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
bool HasUnknownFields(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

absl::Status UnknownFields(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(
      what, " has fields that this node does not know; upgrade this node"));
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
  return HasUnknownFields(*message) ? UnknownFields(what) : absl::OkStatus();
}

absl::Status CheckReason(const char* what, const std::string& reason) {
  if (reason.size() <= kMaxReasonBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the reason of ", what, " has ", reason.size(),
                   " bytes; allowed: at most ", kMaxReasonBytes));
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
         kind <= static_cast<int32_t>(RecordKind::kLabels);
}

absl::string_view KindName(int32_t kind) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPlan:
      return "plan";
    case RecordKind::kPhase:
      return "phase";
    case RecordKind::kBan:
      return "ban";
    case RecordKind::kDrain:
      return "drain";
    case RecordKind::kLabels:
      return "labels";
  }
  return "unknown";
}

std::string LabelText(absl::string_view key, absl::string_view value) {
  return absl::StrCat(key, "=", value);
}

absl::Status ValidateLabel(absl::string_view text) {
  const size_t at = text.find('=');
  if (at == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(text.substr(0, kNameInError)),
                     "\" is no label; a label is KEY=VALUE: site=north"));
  }
  DFL_RETURN_IF_ERROR(
      Annotate(ValidateNodeName(text.substr(0, at)), "the key of a label"));
  return Annotate(ValidateNodeName(text.substr(at + 1)),
                  "the value of a label");
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
  for (const std::string& label : order.labels) message.add_labels(label);
  return message.SerializeAsString();
}

std::string ToContent(const BanOrder& order) {
  pb::BanOrder message;
  message.set_banned(order.banned);
  message.set_reason(order.reason);
  return message.SerializeAsString();
}

std::string ToContent(const DrainOrder& order) {
  pb::DrainOrder message;
  message.set_draining(order.draining);
  message.set_reason(order.reason);
  return message.SerializeAsString();
}

std::string ToContent(const LabelsOrder& order) {
  pb::LabelsOrder message;
  for (const auto& [key, value] : order.labels) {
    pb::Label* label = message.add_labels();
    label->set_key(key);
    label->set_value(value);
  }
  message.set_from_settings(order.from_settings);
  return message.SerializeAsString();
}

absl::StatusOr<PhaseOrder> ParsePhaseOrder(absl::string_view content) {
  pb::PhaseOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, "the order of a phase", &message));
  PhaseOrder order;
  DFL_ASSIGN_OR_RETURN(order.phase, ParsePhase(message.phase()));
  DFL_RETURN_IF_ERROR(CheckRunId(message.run_id()));
  order.run_id = message.run_id();
  const size_t named = static_cast<size_t>(message.nodes_size()) +
                       static_cast<size_t>(message.labels_size());
  if (named > kMaxOrderedNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the order of a phase names ", named,
                     " nodes and labels; allowed: at most ", kMaxOrderedNodes,
                     ", or none, which is all"));
  }
  for (const std::string& node : message.nodes()) {
    DFL_RETURN_IF_ERROR(
        Annotate(ValidateNodeName(node), "the order of a phase"));
    order.nodes.push_back(node);
  }
  for (const std::string& label : message.labels()) {
    DFL_RETURN_IF_ERROR(Annotate(ValidateLabel(label), "the order of a phase"));
    order.labels.push_back(label);
  }
  return order;
}

absl::StatusOr<BanOrder> ParseBanOrder(absl::string_view content) {
  pb::BanOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, "the order of a ban", &message));
  DFL_RETURN_IF_ERROR(CheckReason("a ban", message.reason()));
  return BanOrder{message.banned(), message.reason()};
}

absl::StatusOr<DrainOrder> ParseDrainOrder(absl::string_view content) {
  pb::DrainOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, "the order to drain", &message));
  DFL_RETURN_IF_ERROR(CheckReason("an order to drain", message.reason()));
  return DrainOrder{message.draining(), message.reason()};
}

absl::StatusOr<LabelsOrder> ParseLabelsOrder(absl::string_view content) {
  constexpr char kWhat[] = "the order of labels";
  pb::LabelsOrder message;
  DFL_RETURN_IF_ERROR(Parse(content, kWhat, &message));
  if (static_cast<size_t>(message.labels_size()) > ports::kMaxLabels ||
      (message.from_settings() && message.labels_size() > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kWhat, " has ", message.labels_size(), " labels; allowed: at most ",
        message.from_settings() ? 0 : ports::kMaxLabels));
  }
  LabelsOrder order;
  order.from_settings = message.from_settings();
  for (const pb::Label& label : message.labels()) {
    if (HasUnknownFields(label)) return UnknownFields(kWhat);
    DFL_RETURN_IF_ERROR(
        Annotate(ValidateLabel(LabelText(label.key(), label.value())), kWhat));
    if (!order.labels.empty() && order.labels.rbegin()->first >= label.key()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kWhat, " has \"", label.key(),
                       "\" behind a key that follows it or is the same"));
    }
    order.labels[label.key()] = label.value();
  }
  return order;
}

uint64_t PlanMark(absl::string_view yaml) {
  const std::string hash = absl::HexStringToBytes(Sha256Hex(yaml));
  uint64_t mark = 0;
  for (size_t i = 0; i < sizeof(mark); ++i) {
    mark = mark << 8 | static_cast<uint8_t>(hash[i]);
  }
  return mark == 0 ? 1 : mark;
}

std::string Summary(int32_t kind, absl::string_view content) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kPlan:
      return absl::StrCat(content.size(), " bytes");
    case RecordKind::kPhase: {
      const absl::StatusOr<PhaseOrder> order = ParsePhaseOrder(content);
      if (!order.ok()) break;
      const absl::string_view phase = PhaseName(order->phase);
      std::vector<std::string> names = order->nodes;
      names.insert(names.end(), order->labels.begin(), order->labels.end());
      if (names.empty()) return absl::StrCat(phase, ": all");
      const bool many = names.size() > kNamesInSummary;
      return absl::StrCat(
          phase, ": ",
          absl::StrJoin(absl::MakeConstSpan(names).subspan(0, kNamesInSummary),
                        ", "),
          many ? absl::StrCat(" and ", names.size() - kNamesInSummary, " more")
               : "");
    }
    case RecordKind::kBan: {
      const absl::StatusOr<BanOrder> order = ParseBanOrder(content);
      if (!order.ok()) break;
      return absl::StrCat(order->banned ? "banned" : "let in again",
                          order->reason.empty() ? "" : ": ",
                          OneLine(order->reason));
    }
    case RecordKind::kDrain: {
      const absl::StatusOr<DrainOrder> order = ParseDrainOrder(content);
      if (!order.ok()) break;
      return absl::StrCat(order->draining ? "drains" : "takes part again",
                          order->reason.empty() ? "" : ": ",
                          OneLine(order->reason));
    }
    case RecordKind::kLabels: {
      const absl::StatusOr<LabelsOrder> order = ParseLabelsOrder(content);
      if (!order.ok()) break;
      if (order->from_settings) return "those of its settings";
      if (order->labels.empty()) return "none";
      return absl::StrJoin(order->labels, ", ", absl::PairFormatter("="));
    }
  }
  return "";
}

}  // namespace dfl::records
