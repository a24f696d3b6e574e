#include "daemon/records/records_in_force.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/records/record_content.h"

namespace dfl::records {
namespace {

bool Is(const runtime::Record& record, RecordKind kind) {
  return record.id.kind == static_cast<int32_t>(kind);
}

}  // namespace

std::vector<tls::Identity> BannedBy(const runtime::RecordBook& book) {
  std::vector<tls::Identity> banned;
  for (const runtime::RecordBook::Held& held : book.current()) {
    if (!Is(*held.record, RecordKind::kBan)) continue;
    const absl::StatusOr<BanOrder> order =
        ParseBanOrder(held.record->content());
    absl::StatusOr<tls::Identity> subject =
        tls::ParseIdentity(held.record->id.subject);
    if (order.ok() && order->banned && subject.ok()) {
      banned.push_back(*std::move(subject));
    }
  }
  return banned;
}

std::optional<WantedPhase> PhaseWantedOf(const runtime::RecordBook& book,
                                         absl::string_view node) {
  for (const runtime::RecordBook::Held& held : book.current()) {
    const runtime::Record& record = *held.record;
    if (!Is(record, RecordKind::kPhase)) continue;
    if (!record.scope.empty() &&
        !std::binary_search(record.scope.begin(), record.scope.end(), node)) {
      continue;
    }
    absl::StatusOr<PhaseOrder> order = ParsePhaseOrder(record.content());
    if (!order.ok()) continue;
    return WantedPhase{order->phase, std::move(order->run_id),
                       record.id.counter, record.id.hash};
  }
  return std::nullopt;
}

std::shared_ptr<const runtime::Record> NewestPlan(
    const runtime::RecordBook& book) {
  for (const runtime::RecordBook::Held& held : book.current()) {
    if (Is(*held.record, RecordKind::kPlan)) return held.record;
  }
  return nullptr;
}

}  // namespace dfl::records
