#include "daemon/app/orders.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/app/network/record_list.h"
#include "daemon/base/status_macros.h"
#include "daemon/records/record_content.h"
#include "daemon/records/records_in_force.h"
#include "daemon/tls/identity.h"

namespace dfl::app {
namespace {

using control::RecordInfo;
using records::RecordKind;
using records::SignedRecordCodec;
using records::UnsignedRecordCodec;
using runtime::Record;
using runtime::RecordBook;
using runtime::RecordGossip;

bool IsOf(const ports::RecordId& id, RecordKind kind) {
  return id.kind == static_cast<int32_t>(kind);
}

std::vector<std::string> SortedUris(
    const std::vector<tls::Identity>& identities) {
  std::vector<std::string> uris;
  uris.reserve(identities.size());
  for (const tls::Identity& identity : identities) {
    uris.push_back(tls::ToUri(identity));
  }
  std::sort(uris.begin(), uris.end());
  return uris;
}

// What a status says of a ban of `node`; "": it is not banned.
std::string BanOf(const NodeId& node,
                  const std::vector<tls::Identity>& banned) {
  for (const tls::Identity& identity : banned) {
    if (identity.role == tls::Role::kNode && identity.name == node.name()) {
      return absl::StrCat(
          "this node is banned: others refuse it until `dflctl peer unban ",
          identity.name, "`");
    }
  }
  return "";
}

}  // namespace

Orders::Orders(OrdersOptions options, Security* security, EventLoop& loop,
               ports::EventSink& events, std::function<void()> recheck)
    : options_(std::move(options)),
      security_(security),
      loop_(loop),
      events_(events),
      signed_(security == nullptr
                  ? nullptr
                  : std::make_unique<SignedRecordCodec>(
                        security->cluster(), [] { return absl::Now(); })),
      unsigned_(security != nullptr ? nullptr
                                    : std::make_unique<UnsignedRecordCodec>(
                                          options_.insecure_cluster)),
      recheck_(std::move(recheck)),
      plan_orders_(loop, events, options_.pauses, [this] { ObeyPhase(); }),
      phase_orders_(options_.self.name(), events) {}

const runtime::RecordJudge& Orders::judge() const {
  if (signed_ != nullptr) return *signed_;
  return *unsigned_;
}

absl::StatusOr<std::string> Orders::Load(RecordGossip& gossip,
                                         runtime::Membership& membership) {
  gossip_ = &gossip;
  membership_ = &membership;
  settings_labels_ = membership.facts().labels;
  if (signed_ != nullptr) signed_->SetBundle(security_->Bundle());
  DFL_ASSIGN_OR_RETURN(std::string note, gossip.Load());
  RefreshBans();
  TakeLabels();
  // So that nobody learns of the node as what it was before its last orders.
  ports::MemberFacts facts = membership.facts();
  facts.labels = labels_;
  if (const auto drain =
          records::DrainWantedOf(gossip.book(), options_.self.name())) {
    facts.condition = ports::Condition::kDraining;
    facts.reason = ReasonFrom(*drain);
  }
  membership.SetFacts(std::move(facts));
  Publish();
  return note;
}

void Orders::Connect(runtime::Node& node, PlanTaker& plans,
                     SharedKeeper& keeper, Worker& setup) {
  const uint64_t obeyed =
      keeper.Do([](runtime::RunKeeper& kept) { return kept.obeyed_order(); });
  const std::shared_ptr<const runtime::KeptPlan> known = keeper.known();
  loop_.RunAndWait([&] {
    plans_ = &plans;
    keeper_ = &keeper;
    plan_orders_.Connect(node, plans, keeper, setup);
    phase_orders_.Connect(node, keeper, setup, obeyed);
    phase_orders_.ObeyDrain(gossip_->book());
    RestoreRecord(*known);
    TakeNewestPlan();
    ObeyPhase();
  });
}

void Orders::Disconnect() {
  plan_orders_.Disconnect();
  phase_orders_.Disconnect();
  plans_ = nullptr;
  keeper_ = nullptr;
}

void Orders::Recheck() {
  Publish();  // what lost against another record is in the history alone
  if (signed_ == nullptr) return;
  const int64_t generation = security_->network().generation();
  if (generation == judged_generation_) return;
  judged_generation_ = generation;
  signed_->SetBundle(security_->Bundle());
  gossip_->TrustChanged();
}

void Orders::Tick(const runtime::NodeStatus& status, const absl::Status& view) {
  if (keeper_ == nullptr) return;
  const std::string plan_fault = plan_orders_.fault();
  const std::string view_fault =
      view.ok() ? ""
                : absl::StrCat(
                      "the graph stays as it is, for the plan cannot be had "
                      "with the members that are there now: ",
                      view.message());
  {
    const absl::MutexLock lock(&mutex_);
    if (view_fault != view_fault_ && !view_fault.empty()) {
      events_.Report(ports::RecordCame{false, NodeId(), view_fault});
    }
    view_fault_ = view_fault;
  }
  const size_t members = membership_->members().size();
  if (std::exchange(members_, members) != members) plan_orders_.TryAgain();
  if (phase_orders_.awaits_model()) ObeyPhase();
  membership_->SetFacts(own_facts_.Tell(
      membership_->facts(),
      OwnFacts::Now{status, labels_, phase_orders_.drain(),
                    plan_fault.empty() ? view_fault : plan_fault,
                    keeper_->known()}));
}

// Orders that control brings.

absl::StatusOr<control::ApplyPlanResult> Orders::ApplyPlan(
    const control::ApplyPlanOptions& options) {
  return options.record.empty() ? ApplyDocument(options) : ApplyRecord(options);
}

absl::StatusOr<control::ApplyPlanResult> Orders::ApplyDocument(
    const control::ApplyPlanOptions& options) {
  if (signed_ != nullptr) return plans_->Apply(options, "plan");
  const auto make_record = [&](const runtime::KeptPlan& plan) {
    return records::MakeUnsignedRecord(RecordKind::kPlan, "", plan.version,
                                       plan.text, options_.insecure_cluster,
                                       options.caller.name, absl::Now());
  };
  DFL_ASSIGN_OR_RETURN(const control::ApplyPlanResult result,
                       plans_->Apply(options, "plan", make_record));
  if (options.dry_run) return result;
  const std::shared_ptr<const runtime::KeptPlan> known = keeper_->known();
  if (IsNewest(known->text)) return result;
  std::string record = known->record;
  if (record.empty()) {  // it was a plan of the settings until now
    DFL_ASSIGN_OR_RETURN(record, make_record(*known));
  }
  DFL_RETURN_IF_ERROR(Spread(record, known->text, known->version));
  return result;
}

bool Orders::IsNewest(absl::string_view plan) {
  bool newest = false;
  loop_.RunAndWait([&] { newest = HoldsNewest(plan); });
  return newest;
}

bool Orders::HoldsNewest(absl::string_view plan) const {
  const auto record = records::NewestPlan(gossip_->book());
  return record != nullptr && record->content() == plan;
}

absl::StatusOr<control::ApplyPlanResult> Orders::ApplyRecord(
    const control::ApplyPlanOptions& options) {
  DFL_ASSIGN_OR_RETURN(const Record record, judge().Open(options.record));
  if (!IsOf(record.id, RecordKind::kPlan)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record of kind ", records::KindName(record.id.kind),
                     " came where a plan is expected"));
  }
  control::ApplyPlanOptions plan = options;
  plan.yaml = std::string(record.content());
  DFL_ASSIGN_OR_RETURN(
      control::ApplyPlanResult result,
      plans_->ApplySigned(plan, record.id.counter, record.author,
                          PlanTaker::Order::kByVersion));
  // The same document, given once more, is no other order.
  if (options.dry_run || (result.unchanged && IsNewest(record.content()))) {
    return result;
  }
  // The node has taken it; from here on it is passed on.
  DFL_RETURN_IF_ERROR(
      Spread(options.record, record.content(), record.id.counter));
  return result;
}

absl::Status Orders::Spread(const std::string& bytes, absl::string_view plan,
                            uint64_t version) {
  absl::StatusOr<RecordBook::Answer> answer =
      absl::UnavailableError("the daemon is shutting down");
  bool counts = true;
  // One that is on disk with its plan need not be there once more.
  const bool kept = keeper_->known()->record == bytes;
  loop_.RunAndWait([&] {
    answer = gossip_->Offer(
        bytes, kept ? RecordBook::Disk::kMay : RecordBook::Disk::kMust);
    if (!answer.ok() || *answer != RecordBook::Answer::kOlder) return;
    // A neighbour may have been given the same plan a moment before: then its
    // record counts, and the order holds all the same.
    counts = HoldsNewest(plan);
    if (!counts) TakeNewestPlan();
  });
  if (!answer.ok()) {
    return absl::Status(
        answer.status().code(),
        absl::StrCat("plan version ", version,
                     " is in force on this node and not passed on to others: ",
                     answer.status().message(), "; then give it once more"));
  }
  if (counts) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "a newer plan than version ", version,
      " is known here; look at it (dflctl plan show) and try again"));
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
  const std::string plan_fault = plan_orders_.fault();
  const std::string draining = phase_orders_.warning();
  const absl::MutexLock lock(&mutex_);
  status.banned = banned_;
  for (const std::string* warning :
       {&ban_of_self_, &plan_fault, &view_fault_, &draining}) {
    if (!warning->empty()) status.warnings.push_back(*warning);
  }
}

// Records that were taken.

void Orders::OnRecordTaken(const Record& record, const NodeId& /*from*/) {
  Publish();
  switch (static_cast<RecordKind>(record.id.kind)) {
    case RecordKind::kPlan:
      return TakeNewestPlan();
    case RecordKind::kPhase:
      return ObeyPhase();
    case RecordKind::kBan:
      return RefreshBans();
    case RecordKind::kDrain:
      return phase_orders_.ObeyDrain(gossip_->book());
    case RecordKind::kLabels:
      TakeLabels();
      return ObeyPhase();
  }
}

// The node may have ended before it was in the book, or the book on disk.
void Orders::RestoreRecord(const runtime::KeptPlan& plan) {
  if (plan.record.empty()) return;
  const absl::Status restored = gossip_->Restore(plan.record);
  if (restored.ok()) return;
  events_.Report(ports::RecordCame{
      false, NodeId(),
      absl::StrCat("the record of the stored plan is left out: ",
                   restored.message())});
}

void Orders::TakeNewestPlan() {
  const auto plan = records::NewestPlan(gossip_->book());
  if (plan != nullptr) plan_orders_.Take(*plan);
}

void Orders::TakeLabels() {
  labels_ = records::LabelsOf(gossip_->book(), options_.self.name())
                .value_or(settings_labels_);
}

void Orders::SetSettingsLabels(records::Labels labels) {
  settings_labels_ = std::move(labels);
  TakeLabels();
  ObeyPhase();
}

void Orders::RefreshBans() {
  if (signed_ == nullptr) return;
  const std::vector<tls::Identity> banned = records::BannedBy(gossip_->book());
  {
    const absl::MutexLock lock(&mutex_);
    banned_ = SortedUris(banned);
    ban_of_self_ = BanOf(options_.self, banned);
  }
  security_->network().SetBanned(banned);
  signed_->SetBanned(banned);
  Recheck();  // authors may be among them
  recheck_();
}

void Orders::Publish() {
  std::vector<RecordInfo> list = ListOf(gossip_->book());
  const absl::MutexLock lock(&mutex_);
  published_ = std::move(list);
}

}  // namespace dfl::app
