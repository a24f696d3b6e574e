#include "daemon/runtime/gossip/record_gossip.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {
namespace {

// A peer may have this many parts at once, four times the longest record, and
// then so many a second.
constexpr double kParts = 1028;
constexpr double kPartsPerSecond = 128;
// After the disk was full.
constexpr absl::Duration kDiskPause = absl::Seconds(30);

class NoJudge final : public RecordJudge {
  static absl::Status None() {
    return absl::FailedPreconditionError(
        "this node takes no records: it has no judge of them");
  }
  bool Knows(int32_t /*kind*/) const override { return false; }
  absl::StatusOr<Record> Open(absl::string_view /*bytes*/) const override {
    return None();
  }
  absl::StatusOr<Record> Reopen(absl::string_view /*bytes*/) const override {
    return None();
  }
  absl::Status CheckAuthor(const Record& /*record*/) const override {
    return None();
  }
};

}  // namespace

RecordGossip::RecordGossip(const RecordOptions& options, ports::Loop& loop,
                           Links& links, ports::EventSink& events,
                           BadMessage bad_message)
    : options_(options),
      loop_(loop),
      links_(links),
      events_(events),
      bad_message_(std::move(bad_message)),
      no_judge_(std::make_unique<NoJudge>()),
      book_(options.judge != nullptr ? *options.judge : *no_judge_,
            options.judge != nullptr ? options.files : nullptr),
      pulls_(loop, links, [this](const ports::RecordId& id) {
        return options_.judge->Knows(id.kind) && book_.Wants(id);
      }) {}

absl::StatusOr<RecordBook::Answer> RecordGossip::Offer(absl::string_view bytes,
                                                       RecordBook::Disk disk) {
  DFL_ASSIGN_OR_RETURN(Record record, judge().Open(bytes));
  const ports::RecordId id = record.id;
  DFL_ASSIGN_OR_RETURN(const RecordBook::Answer answer,
                       book_.Offer(std::move(record), disk));
  Taken(id, answer);
  return answer;
}

absl::Status RecordGossip::Restore(absl::string_view bytes) {
  DFL_ASSIGN_OR_RETURN(Record record, judge().Reopen(bytes));
  const ports::RecordId id = record.id;
  DFL_ASSIGN_OR_RETURN(const RecordBook::Answer answer,
                       book_.Restore(std::move(record)));
  Taken(id, answer);
  return absl::OkStatus();
}

void RecordGossip::Taken(const ports::RecordId& id, RecordBook::Answer answer) {
  SaveLater();
  if (answer != RecordBook::Answer::kTaken) return;
  Announce(book_.Find(id)->record, NodeId());
}

void RecordGossip::TrustChanged() {
  if (options_.judge == nullptr) return;
  const bool regained = book_.Recheck();
  pulls_.ForgetRefusals();
  if (!regained) return;
  for (const auto& [peer, allowance] : allowances_) SendAll(peer);
}

bool RecordGossip::HasJudge(const NodeId& from) {
  if (options_.judge != nullptr) return true;
  bad_message_(from,
               "it sends signed records, and this node is in no secured "
               "network");
  return false;
}

void RecordGossip::OnFrame(const NodeId& from, ports::RecordSummary frame) {
  if (!HasJudge(from)) return;
  if (!pulls_.Offered(from, std::move(frame.records))) {
    bad_message_(
        from, absl::StrCat("it announces more than ", RecordPulls::kMaxOffers,
                           " records that are not held here"));
  }
}

void RecordGossip::OnFrame(const NodeId& from, ports::RecordWant frame) {
  if (!HasJudge(from)) return;
  if (!SpendPart(from)) return;
  ports::RecordPart part;
  const RecordBook::Held* held = book_.Find(frame.record);
  part.record = std::move(frame.record);
  // The author's certificate may have expired since; the check is short, and
  // once a record is enough.
  if (held != nullptr && held->trusted &&
      (frame.offset > 0 || options_.judge->CheckAuthor(*held->record).ok())) {
    const std::string& bytes = held->record->bytes;
    const auto total = static_cast<int64_t>(bytes.size());
    if (frame.offset >= total) {
      bad_message_(from, absl::StrCat("it wants a part at ", frame.offset,
                                      " of a record of ", total, " bytes"));
      return;
    }
    part.total_bytes = total;
    part.offset = frame.offset;
    part.data = bytes.substr(static_cast<size_t>(frame.offset),
                             ports::kMaxRecordPartBytes);
  }
  (void)links_.Send(from, std::move(part));
}

void RecordGossip::OnFrame(const NodeId& from, ports::RecordPart frame) {
  if (!HasJudge(from)) return;
  absl::StatusOr<std::optional<RecordPulls::Whole>> whole =
      pulls_.OnPart(from, std::move(frame));
  if (!whole.ok()) {
    bad_message_(from, std::string(whole.status().message()));
  } else if (whole->has_value()) {
    TakeWhole(from, **std::move(whole));
  }
}

void RecordGossip::Refuse(const NodeId& from, const ports::RecordId& id,
                          const absl::Status& why) {
  const std::string text = absl::StrCat("a record is refused: ", why.message());
  events_.Report(ports::RecordCame{false, from, text});
  bad_message_(from, text);
  pulls_.Refused(from, id);
}

void RecordGossip::TakeWhole(const NodeId& from, RecordPulls::Whole whole) {
  absl::StatusOr<Record> record = options_.judge->Open(whole.bytes);
  if (!record.ok()) return Refuse(from, whole.id, record.status());
  if (!(record->id == whole.id)) {
    return Refuse(from, whole.id,
                  absl::InvalidArgumentError(
                      absl::StrCat("\"", record->Describe(),
                                   "\" is not the record that was announced")));
  }
  const absl::StatusOr<RecordBook::Answer> answer =
      book_.Offer(*std::move(record), RecordBook::Disk::kMay);
  if (!answer.ok()) {
    events_.Report(ports::RecordCame{
        false, from,
        absl::StrCat("a record is in order and cannot be stored: ",
                     answer.status().message())});
    return pulls_.Postponed(from, kDiskPause);
  }
  SaveLater();
  if (*answer != RecordBook::Answer::kTaken) {
    return pulls_.Useless(from, whole.id);
  }
  Announce(book_.Find(whole.id)->record, from);
  pulls_.Taken(from);
}

// A full disk keeps no order from being obeyed.
void RecordGossip::SaveLater() {
  if (book_.not_on_disk().ok() || save_timer_ != 0) return;
  events_.Report(ports::RecordCame{
      false, NodeId(),
      absl::StrCat("records hold and cannot be stored, so a restart forgets "
                   "them until a neighbour tells them again: ",
                   book_.not_on_disk().message())});
  save_timer_ = loop_.After(kDiskPause, [this] { SaveAgain(); });
}

void RecordGossip::SaveAgain() {
  book_.SaveAgain();
  save_timer_ = book_.not_on_disk().ok()
                    ? 0
                    : loop_.After(kDiskPause, [this] { SaveAgain(); });
}

void RecordGossip::Announce(std::shared_ptr<const Record> record,
                            const NodeId& from) {
  events_.Report(ports::RecordCame{true, from, record->Describe()});
  if (options_.listener != nullptr) {
    options_.listener->OnRecordTaken(*record, from);
  }
  // The listener may have changed whom the judge trusts.
  const RecordBook::Held* held = book_.Find(record->id);
  if (held == nullptr || !held->trusted) return;
  for (const auto& [peer, allowance] : allowances_) {
    if (peer == from) continue;
    (void)links_.Send(peer, ports::RecordSummary{{record->id}});
  }
}

void RecordGossip::SendAll(const NodeId& peer) {
  ports::RecordSummary summary;
  for (const RecordBook::Held& held : book_.current()) {
    if (!held.trusted) continue;
    summary.records.push_back(held.record->id);
    if (summary.records.size() <
        static_cast<size_t>(ports::kMaxSummarisedRecords)) {
      continue;
    }
    (void)links_.Send(peer, std::exchange(summary, {}));
  }
  if (!summary.records.empty()) (void)links_.Send(peer, std::move(summary));
}

bool RecordGossip::SpendPart(const NodeId& peer) {
  const auto found = allowances_.find(peer);
  if (found == allowances_.end()) return false;
  Allowance& allowance = found->second;
  const absl::Time now = loop_.Now();
  allowance.parts = std::min(
      kParts, allowance.parts +
                  kPartsPerSecond * absl::ToDoubleSeconds(now - allowance.at));
  allowance.at = now;
  if (allowance.parts < 1) return false;
  allowance.parts -= 1;
  return true;
}

void RecordGossip::OnPeerUp(const NodeId& peer, bool /*restarted*/) {
  if (options_.judge == nullptr) return;
  allowances_[peer] = {kParts, loop_.Now()};
  pulls_.OnPeerUp(peer);
  SendAll(peer);
}

void RecordGossip::OnPeerDown(const NodeId& peer,
                              const absl::Status& /*reason*/) {
  allowances_.erase(peer);
  pulls_.OnPeerDown(peer);
}

}  // namespace dfl::runtime
