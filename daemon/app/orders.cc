#include "daemon/app/orders.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/app/node_orders.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"
#include "daemon/records/records_in_force.h"
#include "daemon/tls/identity.h"

namespace dfl::app {
namespace {

using control::RecordInfo;
using records::RecordKind;
using runtime::Record;
using runtime::RecordBook;
using runtime::RecordGossip;

bool IsOf(const ports::RecordId& id, RecordKind kind) {
  return id.kind == static_cast<int32_t>(kind);
}

// What the keeper remembers of an order that was obeyed: eight bytes of its
// hash. Its counter would not do: of two orders with one counter one wins, and
// an order that takes the place of a thief's may have a lower one.
uint64_t MarkOf(const std::string& hash) {
  uint64_t mark = 0;
  for (size_t i = 0; i < sizeof(mark) && i < hash.size(); ++i) {
    mark = mark << 8 | static_cast<uint8_t>(hash[i]);
  }
  return mark == 0 ? 1 : mark;
}

RecordInfo InfoOf(const ports::RecordId& id, const std::string& author,
                  int64_t unix_nanos, const std::string& text, bool current) {
  RecordInfo info;
  info.kind = std::string(records::KindName(id.kind));
  info.subject = id.subject;
  info.counter = id.counter;
  info.author = author;
  info.signed_at = absl::FromUnixNanos(unix_nanos);
  info.summary = text;
  info.current = current;
  info.body_sha256 = absl::BytesToHexString(id.hash);
  return info;
}

}  // namespace

Orders::Orders(NodeId self, Security& security, EventLoop& loop,
               ports::EventSink& events, std::function<void()> recheck)
    : self_(std::move(self)),
      security_(security),
      loop_(loop),
      events_(events),
      codec_(security.cluster(), [] { return absl::Now(); }),
      recheck_(std::move(recheck)) {}

absl::StatusOr<std::string> Orders::Load(RecordGossip& gossip) {
  gossip_ = &gossip;
  codec_.SetBundle(security_.Bundle());
  DFL_ASSIGN_OR_RETURN(std::string note, gossip.Load());
  RefreshBans();
  return note;
}

void Orders::Connect(runtime::Node& node, PlanTaker& plans,
                     SharedKeeper& keeper, Worker& setup) {
  const uint64_t obeyed =
      keeper.Do([](runtime::RunKeeper& kept) { return kept.obeyed_order(); });
  loop_.RunAndWait([&] {
    node_ = &node;
    plans_ = &plans;
    keeper_ = &keeper;
    setup_ = &setup;
    obeyed_ = obeyed;
    const auto plan = records::NewestPlan(gossip_->book());
    if (plan != nullptr) TakePlan(*plan);
    ObeyPhase();
  });
}

void Orders::Disconnect() {
  node_ = nullptr;
  plans_ = nullptr;
  keeper_ = nullptr;
  setup_ = nullptr;
}

void Orders::Recheck() {
  Publish();  // what lost against another record is in the history alone
  const int64_t generation = security_.network().generation();
  if (generation == judged_generation_) return;
  judged_generation_ = generation;
  codec_.SetBundle(security_.Bundle());
  gossip_->TrustChanged();
}

// Orders that control brings.

absl::StatusOr<control::ApplyPlanResult> Orders::ApplyPlan(
    const control::ApplyPlanOptions& options) {
  DFL_ASSIGN_OR_RETURN(const Record record, codec_.Open(options.record));
  if (!IsOf(record.id, RecordKind::kPlan)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record of kind ", records::KindName(record.id.kind),
                     " came where a plan is expected"));
  }
  control::ApplyPlanOptions plan = options;
  plan.yaml = std::string(record.content());
  plan.record.clear();
  DFL_ASSIGN_OR_RETURN(
      control::ApplyPlanResult result,
      plans_->ApplySigned(plan, record.id.counter, record.author,
                          PlanTaker::Order::kByVersion));
  if (options.dry_run) return result;
  // The node has taken it; from here on it is passed on.
  absl::StatusOr<RecordBook::Answer> answer =
      absl::UnavailableError("the daemon is shutting down");
  loop_.RunAndWait([&] { answer = gossip_->Offer(options.record); });
  DFL_RETURN_IF_ERROR(answer.status());
  // The same document, signed once more, may lose against its first signature.
  if (*answer == RecordBook::Answer::kOlder && !result.unchanged) {
    return absl::AbortedError(absl::StrCat(
        "a newer plan than version ", record.id.counter,
        " is known here; look at it (dflctl plan show) and try again"));
  }
  return result;
}

void Orders::PutRecord(std::string bytes,
                       control::Done<control::PutRecordResult> done) {
  loop_.Post([this, bytes = std::move(bytes), done = std::move(done)] {
    const absl::StatusOr<RecordBook::Answer> answer = gossip_->Offer(bytes);
    Publish();
    if (!answer.ok()) {
      done(answer.status());
    } else if (*answer == RecordBook::Answer::kOlder) {
      done(absl::AbortedError(
          "a newer record is known here; look at it (dflctl record list) and "
          "try again"));
    } else {
      done(control::PutRecordResult{*answer == RecordBook::Answer::kUnchanged});
    }
  });
}

std::vector<RecordInfo> Orders::List() const {
  const absl::MutexLock lock(&mutex_);
  return published_;
}

void Orders::Tell(control::DaemonStatus& status) const {
  const absl::MutexLock lock(&mutex_);
  status.banned = banned_;
  if (!ban_of_self_.empty()) status.warnings.push_back(ban_of_self_);
  if (!plan_fault_.empty()) status.warnings.push_back(plan_fault_);
}

// Records that were taken.

void Orders::OnRecordTaken(const Record& record, const NodeId& /*from*/) {
  Publish();
  if (IsOf(record.id, RecordKind::kBan)) {
    RefreshBans();
  } else if (IsOf(record.id, RecordKind::kPlan)) {
    TakePlan(record);
  } else {
    ObeyPhase();
  }
}

void Orders::TakePlan(const Record& record) {
  if (plans_ == nullptr) return;  // Connect does it
  control::ApplyPlanOptions options;
  options.yaml = std::string(record.content());
  auto fault = std::make_shared<std::string>();
  const uint64_t turn = ++plan_turn_;
  setup_->Run(
      [this, plans = plans_, turn, options, counter = record.id.counter,
       author = record.author, fault] {
        if (turn != plan_turn_) return;  // a newer one waits
        const auto applied = plans->ApplySigned(options, counter, author,
                                                PlanTaker::Order::kByRecord);
        if (applied.ok()) return;
        *fault = absl::StrCat("plan version ", counter, " of ", author,
                              " is not taken up: ", applied.status().message());
      },
      [this, turn, fault] {
        if (turn != plan_turn_) return;
        SetPlanFault(*fault);
        if (!fault->empty()) {
          events_.Report(ports::RecordCame{false, NodeId(), *fault});
        }
        ObeyPhase();
      });
}

void Orders::SetPlanFault(std::string fault) {
  const absl::MutexLock lock(&mutex_);
  plan_fault_ = std::move(fault);
}

void Orders::ObeyPhase() {
  if (node_ == nullptr || node_->plan() == nullptr) return;
  const std::optional<records::WantedPhase> wanted =
      records::PhaseWantedOf(gossip_->book(), self_.name(), {});
  if (!wanted.has_value() || wanted->run_id != node_->plan()->run_id) return;
  const uint64_t mark = MarkOf(wanted->hash);
  if (mark == obeyed_) return;
  obeyed_ = mark;
  const NodeOrder given = Give(*node_, wanted->phase);
  if (!given.status.ok()) {
    events_.Report(ports::RecordCame{
        false, NodeId(),
        absl::StrCat("the order with counter ", wanted->counter,
                     " cannot be obeyed: ", given.status.message())});
  }
  auto saved = std::make_shared<absl::Status>();
  setup_->Run(
      [keeper = keeper_, wanted = *wanted, mark, saved] {
        *saved = keeper->Do([&](runtime::RunKeeper& keeper) {
          return keeper.Obey(wanted.phase, wanted.run_id, mark);
        });
      },
      [this, saved] {
        if (saved->ok()) return;
        events_.Report(ports::RecordCame{
            false, NodeId(),
            absl::StrCat("the node obeys, but will not know of it after a "
                         "restart: ",
                         saved->message())});
      });
}

void Orders::RefreshBans() {
  const std::vector<tls::Identity> banned = records::BannedBy(gossip_->book());
  std::vector<std::string> names;
  std::string ban_of_self;
  for (const tls::Identity& identity : banned) {
    names.push_back(tls::ToUri(identity));
    if (identity.role == tls::Role::kNode && identity.name == self_.name()) {
      ban_of_self = absl::StrCat(
          "this node is banned: others refuse it until `dflctl peer unban ",
          self_.name(), "`");
    }
  }
  std::sort(names.begin(), names.end());
  {
    const absl::MutexLock lock(&mutex_);
    banned_ = std::move(names);
    ban_of_self_ = std::move(ban_of_self);
  }
  security_.network().SetBanned(banned);
  codec_.SetBanned(banned);
  Recheck();  // authors may be among them
  recheck_();
}

void Orders::Publish() {
  std::vector<RecordInfo> list;
  for (const RecordBook::Held& held : gossip_->book().current()) {
    const Record& record = *held.record;
    list.push_back(
        InfoOf(record.id, record.author, record.unix_nanos, record.text, true));
  }
  for (const runtime::PastRecord& past : gossip_->book().history()) {
    list.push_back(
        InfoOf(past.id, past.author, past.unix_nanos, past.text, false));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const RecordInfo& a, const RecordInfo& b) {
                     return std::tie(a.kind, a.subject, a.counter) <
                            std::tie(b.kind, b.subject, b.counter);
                   });
  const absl::MutexLock lock(&mutex_);
  published_ = std::move(list);
}

}  // namespace dfl::app
