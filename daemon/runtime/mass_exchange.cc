#include "daemon/runtime/mass_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"

namespace dfl::runtime {

using ports::RefuseReason;

namespace {

// It is not known yet what a node in that phase goes on from.
bool MayChangeItsModel(ports::Phase phase) {
  return phase == ports::Phase::kIdle || phase == ports::Phase::kJoining;
}

Refusal NotReady(std::string why) {
  return {RefuseReason::kNotReady, std::move(why)};
}

constexpr char kIsHeld[] =
    "it has lost its memory again and again; its mass waits for the next "
    "tracker epoch";
constexpr char kIsDoubted[] =
    "one of us has started again, and what it still holds is being compared";

}  // namespace

Refusal RefusedBySuspended() {
  return NotReady("this node ends, and what it has is on disk");
}

MassExchange::MassExchange(OwnState& own, PeerTable& peers, Links& links,
                           Transfers& transfers, Rejections& rejections,
                           Presence& presence, ports::Loop& loop)
    : own_(own),
      peers_(peers),
      links_(links),
      loop_(loop),
      rejections_(rejections),
      presence_(presence),
      epochs_(own, peers, links, rejections, loop),
      parcels_(
          loop, transfers, DeriveSeed(1, own.self.name()),
          [this](const NodeId& peer) { return MayGive(peer); },
          [this](const core::Delivered& d) { OnDelivered(d); }),
      doubts_(loop, *this) {}

bool MassExchange::MayGive(const NodeId& peer) const {
  return links_.IsUp(peer) && !peers_.Mismatch(peer, true) &&
         held_.count(peer) == 0 && !doubts_.Of(peer);
}

void MassExchange::Tell(ports::StateFrame& state, const NodeId& to) const {
  if (!Gives()) return;
  state.tracker_epoch = parcels_.epoch();
  state.books = own_.algorithm.get()->BooksWith(to);
}

void MassExchange::OnDelivered(const core::Delivered& delivered) {
  const core::Algorithm* algorithm = own_.algorithm.get();
  if (algorithm == nullptr) return;
  peers_.CountSent(delivered.to,
                   4 * algorithm->MassLength(own_.model.parameter_count()));
  own_.algorithm.Handle(delivered);
}

// -------------------------------------------------------------------- in ----

std::optional<Refusal> MassExchange::Objection(
    const NodeId& from, const ports::TransferBegin& begin) {
  if (!Gives()) return NotReady("no algorithm that takes mass runs");
  if (own_.suspended) return RefusedBySuspended();
  if (!own_.run.MayTakePart(from)) {
    return rejections_.Note(
        from, {RefuseReason::kNotANeighbour, "no member of this node's plan"});
  }
  if (held_.count(from) > 0) return NotReady(kIsHeld);
  if (doubts_.Of(from)) return NotReady(kIsDoubted);
  Follow(from, begin.tracker_epoch);
  if (begin.tracker_epoch < parcels_.epoch()) {
    return OlderEpoch(from, begin.tracker_epoch);
  }
  if (begin.tracker_epoch > parcels_.epoch()) {  // it was not believed
    return rejections_.Note(
        from, NotReady(absl::StrCat(
                  "this node is in tracker epoch ", parcels_.epoch(),
                  " and does not follow to ", begin.tracker_epoch, " yet")));
  }
  return std::nullopt;
}

Refusal MassExchange::OlderEpoch(const NodeId& from, uint64_t epoch) {
  presence_.TellTo(from);  // it has not heard of the new one yet
  return rejections_.Note(
      from, {RefuseReason::kOlderEpoch,
             absl::StrCat("tracker epoch ", epoch, " is over; it is ",
                          parcels_.epoch(), " now")});
}

double MassExchange::OnMass(const NodeId& from, uint64_t tracker_epoch,
                            uint64_t sequence, int64_t round,
                            std::vector<double> scalars,
                            std::unique_ptr<codec::DecodedMessage> message) {
  AlgorithmDriver& algorithm = own_.algorithm;
  if (!algorithm.get() || tracker_epoch != parcels_.epoch()) return 0;  // void
  parcels_.NoteTaken(from);
  peers_.CountReceived(from);
  const bool increments = core::IsSteps(message->header().format.values);
  core::RemoteModel mass;
  mass.step = round;
  mass.scalars = std::move(scalars);
  mass.buffers.assign(message->buffers().begin(), message->buffers().end());
  mass.answer = message->answer();
  mass.parameters = std::move(message);
  algorithm.Handle(
      core::MassArrived{from, sequence, std::move(mass), increments});
  return algorithm.get() ? algorithm.get()->MassTaken(from) : 0;
}

// ---------------------------------------------------------------- epochs ----

void MassExchange::Void(uint64_t epoch) {
  parcels_.Enter(epoch);
  loop_.Cancel(std::exchange(timer_, 0));
  for (const NodeId& peer : held_) peers_.Hold(peer, false);
  held_.clear();
  for (const NodeId& peer : doubts_.Clear()) peers_.Hold(peer, false);
}

void MassExchange::Enter(uint64_t epoch) {
  std::set<NodeId> held = doubts_.Clear();
  for (const NodeId& peer : held) peers_.Hold(peer, false);
  held.insert(held_.begin(), held_.end());
  Void(epoch);
  own_.algorithm.Handle(core::EpochBegins{});
  presence_.Tell();
  for (const NodeId& peer : held) presence_.Refresh(peer);
}

void MassExchange::Follow(const NodeId& peer, uint64_t epoch) {
  if (!Gives() || epoch <= parcels_.epoch() || peers_.Mismatch(peer, true) ||
      !own_.run.IsMember(peer) ||
      !epochs_.Believes(peer, epoch, parcels_.epoch())) {
    return;
  }
  Enter(epoch);
}

void MassExchange::FollowAll() {
  for (const auto& [id, peer] : peers_.all()) {
    if (peer.known && !MayChangeItsModel(peer.state.phase)) {
      Follow(id, peer.state.tracker_epoch);
    }
  }
}

void MassExchange::GoOn(uint64_t epoch, const std::set<NodeId>& partners) {
  Void(epoch);
  for (const NodeId& peer : partners) {
    parcels_.NoteTaken(peer);
    Doubt(peer);
  }
}

void MassExchange::BeginAbove(uint64_t epoch) {
  if (Gives()) Enter(std::max(epoch, parcels_.epoch()) + 1);
}

void MassExchange::OnPeerUp(const NodeId& peer, bool restarted) {
  if ((restarted && parcels_.partners().count(peer) > 0) || doubts_.Of(peer)) {
    Doubt(peer);
  }
}

// A link that is up tells by itself. The life that it was of is the one that
// mass was exchanged with.
void MassExchange::OnMember(const NodeId& peer) {
  const auto last = links_.peers().find(peer);
  if (last == links_.peers().end() || last->second.link != 0 ||
      parcels_.partners().count(peer) == 0 || !IsThere(peer)) {
    return;
  }
  const bool again = members_->MemoryOf(peer) != last->second.incarnation;
  if (again && !doubts_.Of(peer)) {
    Doubt(peer, /*heard=*/true);
  } else if (!again && doubts_.IsHeard(peer)) {
    doubts_.End(peer);
    peers_.Hold(peer, held_.count(peer) > 0);
  }
}

bool MassExchange::IsDecided(const NodeId& peer) const {
  const auto it = peers_.all().find(peer);
  return it != peers_.all().end() && it->second.known &&
         !it->second.state.run_id.empty() &&
         !MayChangeItsModel(it->second.state.phase) &&
         !MayChangeItsModel(own_.phases.now());
}

void MassExchange::Doubt(const NodeId& peer, bool heard) {
  peers_.Hold(peer, true);
  doubts_.Begin(peer, heard);
}

void MassExchange::OnState(const NodeId& peer, const ports::StateFrame& state) {
  if (!MayChangeItsModel(state.phase)) Follow(peer, state.tracker_epoch);
  CompareBooks(peer, state);
}

void MassExchange::CompareBooks() {
  for (const NodeId& peer : doubts_.all()) {
    const auto it = peers_.all().find(peer);
    if (it == peers_.all().end() || !it->second.known) continue;
    const ports::StateFrame state = it->second.state;
    CompareBooks(peer, state);
  }
}

void MassExchange::CompareBooks(const NodeId& peer,
                                const ports::StateFrame& state) {
  if (!doubts_.Of(peer) || !IsDecided(peer)) return;
  const bool same_epoch = Gives() && state.tracker_epoch == parcels_.epoch() &&
                          !peers_.Mismatch(peer, true);
  if (same_epoch && !state.books) return;  // it will say
  doubts_.End(peer);
  if (!same_epoch ||
      !core::Agree(own_.algorithm.get()->BooksWith(peer), *state.books)) {
    return OnLost(peer);
  }
  peers_.Hold(peer, held_.count(peer) > 0);
  presence_.Refresh(peer);
  Resume(peer, /*news=*/true);
}

void MassExchange::OnLost(const NodeId& peer) {
  peers_.Hold(peer, false);
  const EpochGuard::Verdict verdict = epochs_.Raise(peer);
  if (verdict == EpochGuard::Verdict::kFollow) {
    Enter(parcels_.epoch() + 1);
    return;
  }
  if (verdict == EpochGuard::Verdict::kTooOften) {
    rejections_.Note(peer, {RefuseReason::kOlderEpoch,
                            "it loses its memory again and again; it takes "
                            "part once in 30 s from now on"});
  }
  held_.insert(peer);
  peers_.Hold(peer, true);
  if (timer_ == 0) {
    timer_ = loop_.After(EpochGuard::kEvery, [this] { ReleaseHeld(); });
  }
}

void MassExchange::ReleaseHeld() {
  timer_ = 0;
  for (const NodeId& peer : held_) {
    if (epochs_.Raise(peer) == EpochGuard::Verdict::kFollow) {
      Enter(parcels_.epoch() + 1);  // which releases all
      return;
    }
  }
  timer_ = loop_.After(EpochGuard::kEvery, [this] { ReleaseHeld(); });
}

void MassExchange::Resume(const NodeId& peer, bool news) {
  if (MayGive(peer)) parcels_.Resume(peer, news);
}

void MassExchange::SetCode() {
  const core::RunPlan& plan = own_.run.plan();
  codec_.Set(plan.codec.mass, DeriveSeed(plan.seed, own_.self.name()));
}

void MassExchange::DropFormerMembers() {
  for (const NodeId& partner : parcels_.partners()) {
    // One that is doubted may not have been found yet: Doubts. One that others
    // have told of was.
    const bool sought = doubts_.Of(partner) && !doubts_.IsHeard(partner);
    if (own_.run.IsMember(partner) || sought) continue;
    Enter(parcels_.epoch() + 1);  // what it held is gone with it
    return;
  }
}

void MassExchange::BeginAlgorithm() {
  if (!parcels_.partners().empty()) Void(parcels_.epoch() + 1);
  if (Gives() && parcels_.epoch() == 0) Void(1);
}

}  // namespace dfl::runtime
