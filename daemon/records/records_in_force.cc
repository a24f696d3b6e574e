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

// A name never has a "=", so names and labels are told apart.
bool Concerns(const runtime::Record& record, absl::string_view node,
              const Labels& labels) {
  const std::vector<std::string>& scope = record.scope;
  const auto has = [&](absl::string_view text) {
    return std::binary_search(scope.begin(), scope.end(), text);
  };
  return scope.empty() || has(node) ||
         std::any_of(labels.begin(), labels.end(), [&](const auto& label) {
           return has(LabelText(label.first, label.second));
         });
}

// The record of a kind that has one subject a node; null: there is none.
const runtime::Record* Find(const runtime::RecordBook& book, RecordKind kind,
                            absl::string_view subject) {
  for (const runtime::RecordBook::Held& held : book.current()) {
    if (Is(*held.record, kind) && held.record->id.subject == subject) {
      return held.record.get();
    }
  }
  return nullptr;
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
                                         absl::string_view node,
                                         const Labels& labels) {
  for (const runtime::RecordBook::Held& held : book.current()) {
    const runtime::Record& record = *held.record;
    if (!Is(record, RecordKind::kPhase)) continue;
    if (!Concerns(record, node, labels)) continue;
    absl::StatusOr<PhaseOrder> order = ParsePhaseOrder(record.content());
    if (!order.ok()) continue;
    return WantedPhase{order->phase, std::move(order->run_id),
                       record.id.counter, record.id.hash};
  }
  return std::nullopt;
}

std::optional<std::string> DrainWantedOf(const runtime::RecordBook& book,
                                         absl::string_view node) {
  const runtime::Record* record = Find(book, RecordKind::kDrain, node);
  if (record == nullptr) return std::nullopt;
  absl::StatusOr<DrainOrder> order = ParseDrainOrder(record->content());
  if (!order.ok() || !order->draining) return std::nullopt;
  return std::move(order->reason);
}

std::optional<Labels> LabelsOf(const runtime::RecordBook& book,
                               absl::string_view node) {
  const runtime::Record* record = Find(book, RecordKind::kLabels, node);
  if (record == nullptr) return std::nullopt;
  absl::StatusOr<LabelsOrder> order = ParseLabelsOrder(record->content());
  if (!order.ok() || order->from_settings) return std::nullopt;
  return std::move(order->labels);
}

std::shared_ptr<const runtime::Record> NewestPlan(
    const runtime::RecordBook& book) {
  for (const runtime::RecordBook::Held& held : book.current()) {
    if (Is(*held.record, RecordKind::kPlan)) return held.record;
  }
  return nullptr;
}

}  // namespace dfl::records
