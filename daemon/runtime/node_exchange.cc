// Neighbours: their frames, our asks, answers and pushes.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/topology.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

using ports::AskPurpose;
using ports::Phase;
using ports::RefuseReason;
using ports::TransferKind;

namespace {

// No honest node gets that far, and sums with it do not overflow.
constexpr int64_t kLargestStep = int64_t{1} << 53;

}  // namespace

// ------------------------------------------------------------------- links ----

void Node::OnPeerUp(const NodeId& peer, bool restarted) {
  PeerState& state = peers_[peer];
  if (restarted) {
    state.push = 0;
    state.next_push.reset();
    state.next_apart.reset();
    state.sent.reset();
    // What it had taken from us and given to us is gone.
    if (parcels_.partners().count(peer) > 0) EnterNextEpoch();
  }
  state.known = false;
  (void)links_.Send(peer, MyState());
  transfers_.OnPeerUp(peer, restarted);
}

void Node::OnPeerDown(const NodeId& peer, const absl::Status& /*reason*/) {
  peers_[peer].known = false;
  transfers_.OnPeerDown(peer);
  RefreshActive(peer);
  // Asks whose answer has not begun to arrive are lost with the link; one that
  // is under way may be resumed, within the algorithm's deadline.
  std::vector<uint64_t> lost;
  for (const auto& [ask, asked] : asks_) {
    if (asked.count(peer) > 0 &&
        !transfers_.InboundMoved(peer, ask, absl::InfiniteDuration())) {
      lost.push_back(ask);
    }
  }
  for (const uint64_t ask : lost) MissAnswer(peer, ask);
  waiting_asks_.erase(
      std::remove_if(waiting_asks_.begin(), waiting_asks_.end(),
                     [&](const PendingAsk& a) { return a.from == peer; }),
      waiting_asks_.end());
}

void Node::OnFrame(const NodeId& peer, ports::CancelAskFrame dropped) {
  waiting_asks_.erase(std::remove_if(waiting_asks_.begin(), waiting_asks_.end(),
                                     [&](const PendingAsk& a) {
                                       return a.from == peer &&
                                              a.ask.ask == dropped.ask;
                                     }),
                      waiting_asks_.end());
  transfers_.CancelOutbound(peer, dropped.ask);
}

void Node::OnFrame(const NodeId& peer, ports::SkipFrame skip) {
  if (!Active(peer)) return;
  HearStep(peer, skip.round);
  Handle(core::Skipped{peer, std::min(skip.round, kLargestStep)});
}

void Node::OnPeerWritable(const NodeId& peer) {
  transfers_.OnPeerWritable(peer);
}

void Node::OnAddressFailed(const std::string& /*address*/) { ContinueJoin(); }

// ------------------------------------------------------------------- state ----

ports::StateFrame Node::MyState() const {
  ports::StateFrame state;
  if (plan_) {
    state.run_id = plan_->run_id;
    state.algorithm = plan_->algorithm.name;
    state.plan_version = plan_->version;
  }
  if (trainer_) state.fingerprint = trainer_->model().fingerprint;
  state.step = algorithm_ ? algorithm_->step() : 0;
  state.phase = phase_;
  if (GivesMass()) state.tracker_epoch = parcels_.epoch();
  return state;
}

void Node::TellState() {
  const ports::StateFrame state = MyState();
  for (const auto& [peer, link] : links_.peers()) {
    if (link.link != 0) (void)links_.Send(peer, state);
  }
}

void Node::OnFrame(const NodeId& peer, ports::StateFrame frame) {
  PeerState& state = peers_[peer];
  state.state = std::move(frame);
  state.state.step = std::min(state.state.step, kLargestStep);
  state.known = true;
  Compare(state);
  // One that is joining itself may be ahead once it has a model.
  const bool has_model =
      state.state.phase != Phase::kIdle && state.state.phase != Phase::kJoining;
  if (unconfirmed_start_ && Running() && has_model && !Mismatch(peer, false) &&
      heard_since_start_.insert(peer).second) {
    unconfirmed_start_ = static_cast<int64_t>(heard_since_start_.size()) <
                         node_plan_.member_count - 1;
    // Of those that are in step with the neighbour it joined it needs nothing.
    const int64_t own = algorithm_->step();
    if (!join_ && state.state.step > (joined_ ? 2 * own : own)) {
      join_ = Join();  // carried out at the next boundary
    }
  }
  FollowEpoch(peer, state.state.tracker_epoch);
  RefreshActive(peer);
  if (start_until_ != absl::InfinitePast() && at_boundary_) ScheduleBoundary();
  if (MayGive(peer)) parcels_.Resume(peer);
  ContinueJoin();
}

void Node::HearStep(const NodeId& peer, int64_t step) {
  ports::StateFrame& state = peers_[peer].state;
  state.step = std::max(state.step, std::min(step, kLargestStep));
}

std::optional<Transfers::Refusal> Node::Mismatch(const NodeId& peer,
                                                 bool same_algorithm) const {
  const auto it = peers_.find(peer);
  return Mismatch(it == peers_.end() ? PeerState() : it->second,
                  same_algorithm);
}

std::optional<Transfers::Refusal> Node::Mismatch(const PeerState& peer,
                                                 bool same_algorithm) const {
  using Refusal = Transfers::Refusal;
  if (!plan_ || !trainer_ || !peer.known) {
    return Refusal{RefuseReason::kNotReady, "no run here yet"};
  }
  if (peer.agrees) return std::nullopt;
  const ports::StateFrame& state = peer.state;
  if (state.run_id != plan_->run_id) {
    return Refusal{RefuseReason::kOtherRun,
                   absl::StrCat("this node is in run ", plan_->run_id,
                                ", the peer in run ",
                                state.run_id.empty() ? "none" : state.run_id)};
  }
  if (state.fingerprint != trainer_->model().fingerprint) {
    return Refusal{
        RefuseReason::kOtherModel,
        absl::StrCat("this node's model has the fingerprint ",
                     trainer_->model().fingerprint.substr(0, 12),
                     ", the peer's ", state.fingerprint.substr(0, 12))};
  }
  if (same_algorithm && state.algorithm != plan_->algorithm.name) {
    return Refusal{RefuseReason::kOtherAlgorithm,
                   absl::StrCat("this node runs ", plan_->algorithm.name,
                                ", the peer ", state.algorithm)};
  }
  return std::nullopt;
}

void Node::Compare(PeerState& peer) const {
  peer.agrees = false;
  peer.agrees = !Mismatch(peer, true);
}

bool Node::IsNeighbour(const NodeId& peer) const {
  return std::any_of(node_plan_.neighbours.begin(), node_plan_.neighbours.end(),
                     [&](const core::Neighbour& n) { return n.node == peer; });
}

bool Node::IsMember(const NodeId& peer) const {
  return std::any_of(plan_->members.begin(), plan_->members.end(),
                     [&](const core::MemberSpec& m) { return m.node == peer; });
}

bool Node::MayPush(const NodeId& peer) const {
  if (core::TopologyVaries(plan_->topology)) return IsMember(peer);
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  if (!info.ok() || (*info)->graphs != core::GraphKind::kDirected) {
    return IsNeighbour(peer);
  }
  return std::any_of(node_plan_.in_neighbours.begin(),
                     node_plan_.in_neighbours.end(),
                     [&](const core::Neighbour& n) { return n.node == peer; });
}

bool Node::Active(const NodeId& peer) const {
  const auto it = peers_.find(peer);
  if (it == peers_.end() || !it->second.known || !links_.IsUp(peer)) {
    return false;
  }
  const Phase phase = it->second.state.phase;
  return (phase == Phase::kTraining || phase == Phase::kDegraded) &&
         !Mismatch(it->second, true);
}

// News of a phase overtake the model that was sent before them. A neighbour that
// finishes or pauses ahead of our round has sent its value of this one.
bool Node::HasSentThisRound(const NodeId& peer) const {
  if (!Running() || at_boundary_ || !links_.IsUp(peer) ||
      Mismatch(peer, true)) {
    return false;
  }
  auto info = core::FindAlgorithm(plan_->algorithm.name);
  return info.ok() && (*info)->lock_step &&
         peers_.at(peer).state.step > algorithm_->step();
}

void Node::RefreshActive(const NodeId& peer) {
  PeerState& state = peers_[peer];
  const bool active = Active(peer);
  if (active == state.active) return;
  if (!active && HasSentThisRound(peer)) {
    leaving_.insert(peer);  // asked again at the boundary
    return;
  }
  state.active = active;
  if (active) {
    Handle(core::PeerUp{peer});
  } else {
    Handle(core::PeerDown{peer});
  }
}

// -------------------------------------------------------------------- asks ----

void Node::OnFrame(const NodeId& peer, ports::AskFrame ask) {
  HearStep(peer, ask.step);
  std::optional<Transfers::Refusal> refusal =
      Mismatch(peer, ask.purpose == AskPurpose::kMix);
  if (!refusal && !initialised_) {
    refusal = Transfers::Refusal{RefuseReason::kNotReady, "no model here yet"};
  }
  if (!refusal && transfers_.TooManyAnswers(peer)) {
    refusal = Transfers::Refusal{RefuseReason::kBusy,
                                 "too many answers are under way to you"};
  }
  if (refusal) {
    (void)links_.Send(
        peer, ports::RefuseFrame{ask.ask, refusal->reason, refusal->text});
    OnBadMessage(peer, refusal->reason, refusal->text);
    return;
  }
  // One ask of a peer at a time: a newer one replaces it.
  for (PendingAsk& waiting : waiting_asks_) {
    if (waiting.from == peer && waiting.ask.purpose == ask.purpose) {
      waiting.ask = ask;
      return;
    }
  }
  waiting_asks_.push_back(PendingAsk{peer, ask});
  if (!handling_) ServeAsks();
}

// Asks are answered whenever the parameters hold w^k, training or not.
void Node::ServeAsks() {
  while (!waiting_asks_.empty() && Settled() && !handling_) {
    const PendingAsk asked = std::move(waiting_asks_.front());
    waiting_asks_.erase(waiting_asks_.begin());
    if (asked.ask.purpose == AskPurpose::kState || !algorithm_) {
      AnswerState(asked);
    } else {
      Handle(core::AskArrived{asked.from, asked.ask.ask});
    }
  }
}

void Node::AnswerState(const PendingAsk& asked) {
  Outgoing outgoing = MakeOutgoing(asked.from, TransferKind::kAnswer,
                                   core::MessageFormat{}, 1, TakeSnapshot());
  outgoing.ask = asked.ask.ask;
  transfers_.Send(std::move(outgoing));
}

void Node::OnFrame(const NodeId& peer, ports::RefuseFrame refuse) {
  const auto it = asks_.find(refuse.ask);
  if (it == asks_.end() || it->second.count(peer) == 0) return;
  if (refuse.reason != RefuseReason::kNotReady &&
      refuse.reason != RefuseReason::kBusy) {
    events_.Report(ports::MessageRejected{
        peer, refuse.reason, absl::StrCat("our ask: ", refuse.text)});
  }
  MissAnswer(peer, refuse.ask);
}

void Node::MissAnswer(const NodeId& from, uint64_t ask) {
  const auto it = asks_.find(ask);
  if (it == asks_.end() || it->second.erase(from) == 0) return;
  if (it->second.empty()) asks_.erase(it);
  if (IsStateAsk(ask)) {
    JoinFailed(from);
    return;
  }
  ++peers_[from].missed;
  ++missed_;
  if ((ask >> 32) == epoch_) {
    Handle(core::AnswerMissing{from, ask & 0xFFFFFFFF});
  }
}

void Node::Do(const core::Ask& action) {
  const uint64_t wire = WireAsk(action.ask);
  for (const NodeId& peer : action.peers) {
    asks_[wire].insert(peer);
  }
  const ports::AskFrame frame{wire, AskPurpose::kMix, algorithm_->step()};
  for (const NodeId& peer : action.peers) {
    if (Mismatch(peer, true) || !links_.Send(peer, frame).ok()) {
      MissAnswer(peer, wire);
    }
  }
}

void Node::Do(const core::CancelAsk& action) {
  const uint64_t wire = WireAsk(action.ask);
  const auto it = asks_.find(wire);
  if (it == asks_.end()) return;
  const std::set<NodeId> outstanding = std::move(it->second);
  asks_.erase(it);
  for (const NodeId& peer : outstanding) {
    transfers_.CancelInbound(peer, wire);
    (void)links_.Send(peer, ports::CancelAskFrame{wire});
  }
}

void Node::Do(const core::Missed& action) {
  for (const NodeId& peer : action.peers) ++peers_[peer].missed;
  missed_ += static_cast<int64_t>(action.peers.size());
  events_.Report(
      ports::NeighboursMissed{algorithm_->step(), action.wanted, action.came});
}

// ------------------------------------------------------------- models out ----

// What is pushed in the midst of a step is not w^k: it takes the buffers with it
// as they are now, and is nobody else's snapshot.
SnapshotPtr Node::TakePushSnapshot(absl::Span<const float> values) {
  if (values.empty() && Settled()) return TakeSnapshot();
  if (values.empty()) values = parameters_;
  auto copy = std::make_shared<Snapshot>();
  copy->parameters.assign(values.begin(), values.end());
  copy->buffers = buffers_;
  copy->step = algorithm_->step();
  return copy;
}

SnapshotPtr Node::TakeSnapshot() {
  SnapshotPtr present = snapshot_.lock();
  if (present && snapshot_generation_ == generation_) return present;
  auto copy = std::make_shared<Snapshot>();
  copy->parameters = parameters_;
  copy->buffers = at_boundary_ ? buffers_ : boundary_buffers_;
  copy->step = algorithm_ ? algorithm_->step() : 0;
  snapshot_ = copy;
  snapshot_generation_ = generation_;
  return copy;
}

Outgoing Node::MakeOutgoing(const NodeId& to, TransferKind kind,
                            core::MessageFormat format, double rate,
                            SnapshotPtr snapshot) {
  Outgoing outgoing;
  outgoing.to = to;
  outgoing.kind = kind;
  outgoing.format = format;
  outgoing.snapshot = std::move(snapshot);
  outgoing.step = outgoing.snapshot->step;
  const auto n = static_cast<int64_t>(parameters_.size());
  outgoing.sent_coordinates = format.coordinates == core::Coordinates::kDense
                                  ? n
                                  : core::SentCoordinates(rate, n);
  const int64_t dense_bytes =
      4 * static_cast<int64_t>(parameters_.size() + buffers_.size());
  outgoing.done = [this, to, dense_bytes](const absl::StatusOr<Receipt>& r) {
    if (!r.ok()) return;
    ++models_sent_;
    ++peers_[to].models_sent;
    dense_bytes_sent_ += dense_bytes;
  };
  return outgoing;
}

void Node::Do(const core::Answer& action) {
  Outgoing outgoing =
      MakeOutgoing(action.to, TransferKind::kAnswer, plan_->codec.format,
                   action.rate, TakeSnapshot());
  outgoing.ask = action.ask;
  outgoing.seed = action.seed;
  transfers_.Send(std::move(outgoing));
}

// The coordinates of symmetric mixing: one name for an edge and a round, the
// same in both directions, so that unsent coordinates do not move the mean.
uint64_t Node::EdgeSeed(const NodeId& peer, int64_t round) const {
  const NodeId& a = std::min(options_.self, peer);
  const NodeId& b = std::max(options_.self, peer);
  return DeriveSeed(DeriveSeed(DeriveSeed(plan_->seed, a.name()), b.name()),
                    "edge", round);
}

void Node::Do(const core::Push& action) {
  SnapshotPtr snapshot;
  for (const NodeId& peer : action.peers) {
    if (!Active(peer)) continue;
    if (!snapshot) snapshot = TakePushSnapshot(action.values);
    Outgoing outgoing =
        MakeOutgoing(peer, TransferKind::kPush, plan_->codec.format,
                     plan_->codec.rate, snapshot);
    outgoing.step = action.round;
    outgoing.scalars = action.scalars;
    outgoing.since = loop_.Now();
    outgoing.seed = EdgeSeed(peer, action.round);
    PeerState& state = peers_[peer];
    // A slow link carries what it can: the newest waits, older ones are
    // replaced.
    if (state.push != 0) {
      (action.apart ? state.next_apart : state.next_push) = std::move(outgoing);
    } else {
      StartPush(peer, std::move(outgoing));
    }
  }
}

void Node::StartPush(const NodeId& peer, Outgoing outgoing) {
  PeerState& state = peers_[peer];
  state.push = ++last_push_;
  const bool top_k = outgoing.format.coordinates == core::Coordinates::kTopK;
  if (top_k) {
    if (!state.sent ||
        state.sent->values().size() != outgoing.snapshot->parameters.size()) {
      state.sent = std::make_shared<codec::EdgeReference>(
          static_cast<int64_t>(outgoing.snapshot->parameters.size()));
    }
    outgoing.reference = state.sent;
  }
  outgoing.done = [this, peer, push = state.push,
                   reference = top_k ? state.sent : nullptr,
                   count = std::move(outgoing.done)](
                      const absl::StatusOr<Receipt>& result) {
    count(result);
    PeerState& after = peers_[peer];
    if (after.push != push) return;  // forgotten meanwhile
    after.push = 0;
    if (reference && result.ok()) reference->Commit(result->sent);
    std::optional<Outgoing>& waiting =
        after.next_apart ? after.next_apart : after.next_push;
    if (waiting) {
      StartPush(peer, *std::exchange(waiting, std::nullopt));
    }
  };
  transfers_.Send(std::move(outgoing));
}

void Node::ForgetPushes() {
  for (auto& [peer, state] : peers_) {
    state.push = 0;
    state.next_push.reset();
    state.next_apart.reset();
  }
}

// -------------------------------------------------------------- models in ----

bool Node::Admit(const NodeId& from, const ports::TransferBegin& begin,
                 int64_t* parameters, int64_t* buffers,
                 Transfers::Refusal* refusal) {
  *parameters = static_cast<int64_t>(parameters_.size());
  *buffers = static_cast<int64_t>(buffers_.size());
  const bool answer = begin.kind == TransferKind::kAnswer;
  if (answer) {
    const auto it = asks_.find(begin.ask);
    if (it == asks_.end() || it->second.count(from) == 0) {
      *refusal = {RefuseReason::kNotReady, "the answer is not wanted any more"};
      return false;
    }
  }
  std::optional<Transfers::Refusal> wrong =
      Mismatch(from, !(answer && IsStateAsk(begin.ask)));
  if (!wrong && begin.step > kLargestStep) {
    wrong = Transfers::Refusal{
        RefuseReason::kBadMessage,
        absl::StrCat("step ", begin.step, " is beyond ", kLargestStep)};
  }
  if (!wrong) wrong = MisplacedSteps(begin);
  if (wrong) {
    *refusal = *std::move(wrong);
    OnBadMessage(from, refusal->reason, refusal->text);
    if (answer) MissAnswer(from, begin.ask);
    return false;
  }
  if (answer) return true;
  HearStep(from, begin.step);
  if (begin.kind == TransferKind::kMass) {
    return AdmitMass(from, begin, parameters, buffers, refusal);
  }
  if (!MayPush(from)) {
    *refusal = {RefuseReason::kNotANeighbour, "no edge in this node's plan"};
    OnBadMessage(from, refusal->reason, refusal->text);
    return false;
  }
  if (!Running() && phase_ != Phase::kPaused) {
    *refusal = {RefuseReason::kNotReady,
                absl::StrCat("this node is ", ports::PhaseName(phase_))};
    return false;
  }
  return true;
}

void Node::OnModel(const NodeId& from, TransferKind kind, uint64_t ask,
                   int64_t step, std::vector<double> scalars,
                   absl::Duration age,
                   std::unique_ptr<codec::DecodedMessage> message) {
  ++models_received_;
  ++peers_[from].models_received;
  core::RemoteModel model;
  model.step = step;
  if (kind == TransferKind::kPush) {
    model.scalars = std::move(scalars);
    model.age = age;
    model.buffers.assign(message->buffers().begin(), message->buffers().end());
    model.parameters = std::move(message);
    if (IsOfLaterGraph(step)) {
      std::map<int64_t, core::RemoteModel>& kept = early_[from];
      kept.insert_or_assign(step, std::move(model));
      if (kept.size() > kMostEarly) kept.erase(kept.begin());
      // It has passed the present round: nothing more of that will come, and
      // nobody should wait for it.
      if (peers_[from].active) {
        Handle(core::PeerDown{from});
        Handle(core::PeerUp{from});
      }
    } else {
      Handle(core::PushArrived{from, std::move(model)});
    }
    return;
  }
  const auto it = asks_.find(ask);
  if (it == asks_.end() || it->second.erase(from) == 0) return;
  if (it->second.empty()) asks_.erase(it);
  HearStep(from, step);
  if (IsStateAsk(ask)) {
    if (join_ && join_->ask == ask) TakeState(from, step, *message);
    return;
  }
  if ((ask >> 32) != epoch_) return;
  model.buffers.assign(message->buffers().begin(), message->buffers().end());
  model.parameters = std::move(message);
  Handle(core::AnswerArrived{from, ask & 0xFFFFFFFF, std::move(model)});
}

void Node::OnTransferLost(const NodeId& from, TransferKind kind, uint64_t ask,
                          const std::string& /*why*/) {
  if (kind == TransferKind::kAnswer) MissAnswer(from, ask);
}

void Node::OnBadMessage(const NodeId& from, RefuseReason reason,
                        const std::string& text) {
  ++rejected_[ports::RefuseReasonName(reason)];
  ++peers_[from].rejected;
  // Of a node that is not ready yet, or busy, counting is enough.
  if (reason == RefuseReason::kNotReady || reason == RefuseReason::kBusy) {
    return;
  }
  events_.Report(ports::MessageRejected{from, reason, text});
}

}  // namespace dfl::runtime
