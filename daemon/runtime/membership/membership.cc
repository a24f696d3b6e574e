#include "daemon/runtime/membership/membership.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/membership/preset.h"

namespace dfl::runtime {

namespace {

// Between two of one name each says the other's words are wrong; no more often.
constexpr absl::Duration kBetweenQuarrels = absl::Seconds(10);
constexpr absl::Duration kSameQuarrel = absl::Minutes(2);

}  // namespace

Membership::Membership(MembershipOptions options, ports::Loop& loop,
                       Links& links, ports::EventSink& events)
    : options_(std::move(options)),
      loop_(loop),
      links_(links),
      events_(events),
      facts_(options_.facts),
      standing_(
          StandingLinksOptions{.self = options_.self, .seed = options_.seed},
          loop, links),
      routes_(options_.self, loop, links, standing_.overlay()),
      pings_(options_.self, loop, routes_,
             [this](const NodeId& node) { return table_.Find(node); }),
      queries_(
          options_.self, loop, routes_,
          [this](const NodeId& node) { return table_.Find(node) != nullptr; }),
      heartbeats_(options_.self, loop, links, [this](const NodeId& peer) {
        return HeartbeatOfPeer(peer);
      }) {
  if (!options_.enabled) return;
  table_ = MemberTable(options_.self, options_.starts, facts_, loop_.Now());
  news_ = std::make_unique<MemberNews>(PresetOf(facts_.pace).batch, table_,
                                       loop_, links_);
  detector_ = std::make_unique<FailureDetector>(
      options_.self, options_.seed, loop_, routes_, table_,
      static_cast<FailureDetector::Judge&>(*this));
  links_.SetDistant(&pings_);
  standing_.OnMember(options_.self, table_.Find(options_.self));
}

Membership::~Membership() {
  if (options_.enabled) links_.SetDistant(nullptr);
}

// What this node says.

void Membership::SetFacts(ports::MemberFacts facts) {
  facts_ = std::move(facts);
  if (active() && table_.SetFacts(facts_)) TellOwn();
}

void Membership::TellOwn() {
  TableChanged(options_.self, table_.Find(options_.self)->state);
  news_->Tell(table_.StatementOn(options_.self), NodeId());
}

void Membership::Leave() {
  if (!active()) return;
  table_.Leave(loop_.Now());
  TellOwn();
  news_->Flush();
  detector_->Stop();
  standing_.Stop();
  left_ = true;
}

void Membership::SetNeighbours(std::vector<NodeId> neighbours) {
  if (active()) standing_.SetNeighbours(std::move(neighbours));
}

void Membership::SetCandidates(const std::string& source,
                               std::vector<std::string> addresses) {
  if (active()) standing_.SetCandidates(source, std::move(addresses));
}

void Membership::SetAnswer(int32_t topic, Answer answer) {
  queries_.SetAnswer(topic, std::move(answer));
}

void Membership::Ask(const NodeId& target, int32_t topic, absl::Duration within,
                     std::function<void(absl::StatusOr<std::string>)> done) {
  queries_.Ask(target, topic, within, std::move(done));
}

void Membership::SendPing(const NodeId& target, absl::Duration within,
                          std::function<void(absl::StatusOr<Ping>)> done) {
  pings_.Send(target, within, std::move(done));
}

// What others say.

void Membership::Apply(const ports::MemberUpdate& update, const NodeId& from) {
  if (update.node == options_.self && IsQuarrel(update)) return;
  const Merged merged = table_.Merge(update, loop_.Now());
  switch (merged.effect) {
    case Merged::Effect::kNone:
      news_->Heard(update, from);
      return;
    case Merged::Effect::kOlder:
      // After a start without memory a node does not know its incarnation.
      if (update.node == from) news_->TellOne(from, from);
      return;
    case Merged::Effect::kConfirmed:
      if (detector_->Confirm(update.node, update.by)) {
        news_->Tell(update, from);
      }
      return;
    case Merged::Effect::kRefuted:
      detector_->OnRefuted();
      TellOwn();
      return;
    case Merged::Effect::kChanged:
      TableChanged(update.node, merged.before);
      news_->Tell(table_.StatementOn(update.node), from);
      return;
  }
}

bool Membership::IsQuarrel(const ports::MemberUpdate& update) {
  const bool other =
      update.state == ports::MemberState::kAlive && update.facts &&
      update.facts->memory != facts_.memory &&
      update.incarnation >= table_.Find(options_.self)->incarnation;
  if (!other) return false;
  const absl::Duration since = loop_.Now() - quarrelled_;
  if (since < kBetweenQuarrels) return true;
  quarrelled_ = loop_.Now();
  // Once it may be what this node was before it lost its state.
  if (since < kSameQuarrel) {
    events_.Report(ports::SecurityNote{
        true, absl::StrCat("another node of the network calls itself ",
                           options_.self.name(),
                           " (a cloned image? give each its own name)")});
  }
  return false;
}

void Membership::TableChanged(const NodeId& node,
                              std::optional<ports::MemberState> before) {
  using ports::MemberState;
  const Member& member = *table_.Find(node);
  standing_.OnMember(node, &member);
  detector_->OnMember(node);
  for (MembershipListener* l : listeners_) l->OnMember(node, &member);
  if (node == options_.self) return;
  const bool was_present =
      before == MemberState::kAlive || before == MemberState::kSuspect;
  if (was_present == member.present()) return;
  std::string text = before ? "is back" : "joined";
  if (member.state == MemberState::kLeft) {
    text = "left";
  } else if (member.state == MemberState::kDead) {
    text = member.by.empty() || member.by == options_.self
               ? "is dead: it did not answer"
               : absl::StrCat("is dead: it did not answer ", member.by.name());
  }
  events_.Report(ports::MemberChanged{node, member.present(), std::move(text)});
}

void Membership::Forget() {
  const absl::Time when = loop_.Now() - PresetOf(facts_.pace).forget;
  for (const NodeId& node : table_.Forget(when)) {
    standing_.OnMember(node, nullptr);
    for (MembershipListener* l : listeners_) l->OnMember(node, nullptr);
  }
}

void Membership::OnFrame(const NodeId& from, ports::ProbeFrame frame) {
  if (!active() || !routes_.Take(from, frame)) return;
  if (frame.route.origin == from) news_->OnTableDigest(from, frame.digest);
  ports::ProbeAckFrame ack;
  ack.route = {.origin = options_.self, .target = frame.route.origin};
  ack.number = frame.number;
  ack.memory = facts_.memory;
  ack.digest = table_.digest();
  (void)routes_.SendBack(from, std::move(ack));
}

void Membership::OnFrame(const NodeId& from, ports::ProbeAckFrame frame) {
  if (!active() || !routes_.Take(from, frame)) return;
  if (!frame.receipt && frame.route.origin == from) {
    news_->OnTableDigest(from, frame.digest);
    LetRefute(from);
  }
  if (!pings_.OnAck(frame)) detector_->OnAck(frame);
}

void Membership::OnFrame(const NodeId& from, ports::MembersFrame frame) {
  if (!active()) return;
  for (const ports::MemberUpdate& update : frame.members) Apply(update, from);
}

void Membership::OnFrame(const NodeId& from, ports::MembersDigestFrame frame) {
  if (active()) news_->OnDigest(from, frame);
}

void Membership::OnFrame(const NodeId& from, ports::QueryFrame frame) {
  if (active() && routes_.Take(from, frame)) queries_.OnFrame(from, frame);
}

void Membership::OnFrame(const NodeId& from, ports::QueryPartFrame frame) {
  if (active() && routes_.Take(from, frame)) {
    queries_.OnFrame(std::move(frame));
  }
}

// What this node finds out.

void Membership::OnNoAnswer(const NodeId& node) {
  if (!table_.IsPresent(node)) return;
  ports::MemberUpdate update;
  update.node = node;
  update.incarnation = table_.Find(node)->incarnation;
  update.state = ports::MemberState::kSuspect;
  update.by = options_.self;
  Apply(update, NodeId());
}

void Membership::OnSuspicionOver(const NodeId& node) {
  const Member* member = table_.Find(node);
  if (member == nullptr || member->state != ports::MemberState::kSuspect) {
    return;
  }
  ports::MemberUpdate update;
  update.node = node;
  update.incarnation = member->incarnation;
  update.state = ports::MemberState::kDead;
  update.by = options_.self;
  Apply(update, NodeId());
}

void Membership::OnPeriod() { Forget(); }

// It lives, and may not know that it is to refute something.
void Membership::LetRefute(const NodeId& peer) {
  const Member* member = table_.Find(peer);
  if (member != nullptr && member->state != ports::MemberState::kAlive) {
    news_->TellOne(peer, peer);
  }
}

void Membership::OnPeerUp(const NodeId& peer, bool /*restarted*/) {
  if (!active()) return;
  news_->OnPeerUp(peer);
  LetRefute(peer);
  detector_->OnPeerUp(peer);
  standing_.OnPeerUp(peer);
  heartbeats_.OnPeerUp();
}

void Membership::OnPeerDown(const NodeId& peer,
                            const absl::Status& /*reason*/) {
  if (!active()) return;
  news_->OnPeerDown(peer);
  detector_->OnPeerDown(peer);
  standing_.OnPeerDown();
}

void Membership::OnPeerWritable(const NodeId&) {}
void Membership::OnAddressFailed(const std::string& address) {
  if (active()) standing_.OnAddressFailed(address);
}

absl::Duration Membership::HeartbeatOfPeer(const NodeId& peer) const {
  // One that is thought dead and is linked answers probes as well, or its link
  // is half-open.
  const Member* member = table_.Find(peer);
  if (!active() || member == nullptr) return absl::ZeroDuration();
  return HeartbeatOf(MorePatient(facts_.pace, member->facts.pace));
}

}  // namespace dfl::runtime
