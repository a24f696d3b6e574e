#include "daemon/app/views/members_view.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/control/member_proto.h"
#include "daemon/ports/member_frames.h"

namespace dfl::app {
namespace {

using control::MemberInfo;
using control::MemberState;
using ports::Condition;

absl::Status MembershipIsOff(const NodeId& node) {
  return absl::NotFoundError(
      absl::StrCat("no way to ", node.name(),
                   ": membership is off on this node, so it knows of itself "
                   "alone"));
}

MemberState StateOf(const runtime::Member& member, bool alone) {
  if (member.state == ports::MemberState::kLeft) return MemberState::kLeft;
  if (member.state == ports::MemberState::kDead) return MemberState::kDead;
  switch (member.facts.condition) {
    case Condition::kDraining:
      return MemberState::kDraining;
    case Condition::kDegraded:
      return MemberState::kDegraded;
    case Condition::kJoining:
      return alone ? MemberState::kAlone : MemberState::kJoining;
    case Condition::kWell:
      break;
  }
  return alone ? MemberState::kAlone : MemberState::kMember;
}

MemberInfo InfoOf(const NodeId& node, const runtime::Member& member) {
  MemberInfo info;
  info.node = node;
  if (member.facts.condition == Condition::kDegraded) {
    info.reason = member.facts.reason;
  }
  info.suspect = member.state == ports::MemberState::kSuspect;
  info.labels = member.facts.labels;
  info.addresses = member.facts.addresses;
  info.rows = member.facts.rows;
  info.participation = member.facts.participation;
  info.plan_version = member.facts.plan_version;
  info.plan_hash = member.facts.plan_hash;
  info.pace = ports::PaceName(member.facts.pace);
  info.starts = member.incarnation.starts;
  return info;
}

}  // namespace

MembersView::MembersView(NodeId self, EventLoop& loop,
                         runtime::Membership* membership,
                         std::function<control::DaemonStatus()> status)
    : self_(std::move(self)),
      loop_(loop),
      membership_(membership),
      status_(std::move(status)),
      rows_(std::make_shared<const Rows>()),
      published_(loop.Now()) {
  if (membership_ == nullptr) return;
  loop_.RunAndWait([this] {
    membership_->SetAnswer(runtime::kStatusTopic, [this] { return Report(); });
  });
}

MembersView::~MembersView() {
  if (membership_ == nullptr) return;
  loop_.RunAndWait(
      [this] { membership_->SetAnswer(runtime::kStatusTopic, nullptr); });
}

std::string MembersView::Report() const {
  const control::DaemonStatus status = status_();
  absl::Time published;
  {
    const absl::MutexLock lock(&mutex_);
    published = published_;
  }
  return control::MemberReport(status, loop_.Now() - published);
}

void MembersView::StillHolds() {
  const absl::MutexLock lock(&mutex_);
  published_ = loop_.Now();
}

void MembersView::Publish(const runtime::NodeStatus& status) {
  StillHolds();
  if (!on()) return;
  std::vector<NodeId> linked;
  for (const runtime::PeerStatus& peer : status.peers) {
    if (peer.linked) linked.push_back(peer.node);
  }
  std::sort(linked.begin(), linked.end());
  // A network has as many nodes as a node has members: whoever looked at each
  // of them here would do so members squared times a second.
  if (membership_->changes() == shown_changes_ && linked == shown_linked_) {
    return;
  }
  auto rows = std::make_shared<Rows>();
  for (const auto& [node, member] : membership_->members()) {
    rows->emplace_hint(
        rows->end(), node,
        Row{member, std::binary_search(linked.begin(), linked.end(), node)});
  }
  shown_changes_ = membership_->changes();
  shown_linked_ = std::move(linked);
  const absl::MutexLock lock(&mutex_);
  rows_ = std::move(rows);
}

control::MemberTable MembersView::Members() const {
  std::shared_ptr<const Rows> rows;
  {
    const absl::MutexLock lock(&mutex_);
    rows = rows_;
  }
  control::MemberTable table;
  table.self = self_;
  table.membership_off = !on();
  if (rows->count(self_) == 0) {
    // Membership is off, or has not begun.
    MemberInfo self;
    self.node = self_;
    self.state = MemberState::kAlone;
    self.pace = ports::PaceName(ports::Pace::kLan);
    self.self = true;
    table.members.push_back(std::move(self));
  }
  bool alone = true;
  for (const auto& [node, row] : *rows) {
    alone = alone && (node == self_ || !row.member.present());
  }
  const absl::Time now = loop_.Now();
  for (const auto& [node, row] : *rows) {
    MemberInfo info = InfoOf(node, row.member);
    info.self = node == self_;
    info.state = StateOf(row.member, info.self && alone);
    info.linked = row.linked;
    info.in_state = std::max(now - row.member.since, absl::ZeroDuration());
    table.members.push_back(std::move(info));
  }
  std::sort(
      table.members.begin(), table.members.end(),
      [](const MemberInfo& a, const MemberInfo& b) { return a.node < b.node; });
  return table;
}

void MembersView::Ask(const NodeId& node, absl::Duration within,
                      control::Done<std::string> done) {
  if (node == self_) return done(Report());
  if (!on()) return done(MembershipIsOff(node));
  loop_.Post([this, node, within, done = std::move(done)]() mutable {
    membership_->Ask(node, runtime::kStatusTopic, within, std::move(done));
  });
}

void MembersView::Ping(const NodeId& node, absl::Duration within,
                       control::Done<control::MemberPing> done) {
  if (node == self_) return done(control::MemberPing());
  if (!on()) return done(MembershipIsOff(node));
  loop_.Post([this, node, within, done = std::move(done)]() mutable {
    membership_->SendPing(
        node, within,
        [done = std::move(done)](absl::StatusOr<runtime::Ping> p) {
          if (!p.ok()) return done(p.status());
          done(control::MemberPing{p->round_trip, p->hops});
        });
  });
}

}  // namespace dfl::app
