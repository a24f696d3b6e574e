#include "daemon/runtime/membership/standing_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/runtime/membership/membership.h"

namespace dfl::runtime {

namespace {

// Who claims addresses, in Links.
constexpr char kForWanted[] = "membership";
constexpr char kForCandidates[] = "discovery";
constexpr char kForDead[] = "members thought dead";
// Between the dials of two addresses of one member.
constexpr absl::Duration kBetweenAddresses = absl::Seconds(1);

}  // namespace

StandingLinks::StandingLinks(StandingLinksOptions options, ports::Loop& loop,
                             Links& links)
    : options_(std::move(options)),
      loop_(loop),
      links_(links),
      rng_(DeriveSeed(options_.seed, "standing links")) {}

StandingLinks::~StandingLinks() {
  loop_.Cancel(update_timer_);
  loop_.Cancel(look_timer_);
}

// ------------------------------------------------------------- what is told --

void StandingLinks::OnMember(const NodeId& node, const Member* member) {
  if (member == nullptr) {
    OnForgotten(node);
    return;
  }
  Known& known = known_[node];
  known.lost = absl::InfiniteFuture();
  known.addresses = member->facts.addresses;
  known.present = member->present();
  const bool dead = member->state == ports::MemberState::kDead;
  if (dead && !known.dead) {
    known.pause = options_.again;
    known.next_try = loop_.Now() + options_.again * rng_.Uniform();
  }
  known.dead = dead;
  if (known.present) {
    overlay_.Set(node, !known.addresses.empty());
  } else {
    overlay_.Remove(node);
  }
  UpdateSoon();
}

void StandingLinks::OnForgotten(const NodeId& node) {
  overlay_.Remove(node);
  UpdateSoon();
  const auto found = known_.find(node);
  if (found == known_.end()) return;
  if (!found->second.dead || found->second.addresses.empty()) {
    known_.erase(found);
    return;
  }
  found->second.lost = loop_.Now();
}

void StandingLinks::SetNeighbours(std::vector<NodeId> neighbours) {
  neighbours_ = {neighbours.begin(), neighbours.end()};
  UpdateSoon();
}

void StandingLinks::Meet(std::set<NodeId> nodes) {
  if (nodes == met_) return;
  met_ = std::move(nodes);
  UpdateSoon();
}

void StandingLinks::SetCandidates(const std::string& source,
                                  std::vector<std::string> addresses) {
  if (addresses.size() > kMostCandidates) addresses.resize(kMostCandidates);
  for (auto& [address, candidate] : candidates_) {
    candidate.sources.erase(source);
  }
  for (const std::string& address : addresses) {
    candidates_[address].sources.insert(source);
  }
  std::erase_if(candidates_,
                [](const auto& entry) { return entry.second.sources.empty(); });
  UpdateSoon();
}

void StandingLinks::Stop() {
  stopped_ = true;
  EndTries();
  for (const auto& [address, claim] : claimed_) {
    links_.Release(kForWanted, address);
  }
  for (const std::string& address : claimed_candidates_) {
    links_.Release(kForCandidates, address);
  }
  claimed_.clear();
  claimed_candidates_.clear();
  loop_.Cancel(std::exchange(update_timer_, 0));
  loop_.Cancel(std::exchange(look_timer_, 0));
}

void StandingLinks::OnPeerUp(const NodeId& peer) {
  const Links::Peer& link = links_.peers().at(peer);
  // Of an accepted link the address is the peer's word.
  const auto candidate = candidates_.find(link.address);
  if (link.dialled_by_us && candidate != candidates_.end()) {
    candidate->second.node = peer;
  }
  UpdateSoon();
}

void StandingLinks::OnPeerDown() { UpdateSoon(); }

void StandingLinks::OnAddressFailed(const std::string& address) {
  if (tried_.erase(address) > 0) links_.Release(kForDead, address);
}

// ------------------------------------------------------------- what is done --

bool StandingLinks::IsOwn(const std::string& address) const {
  const Known* self = Find(options_.self);
  return self != nullptr &&
         std::find(self->addresses.begin(), self->addresses.end(), address) !=
             self->addresses.end();
}

const StandingLinks::Known* StandingLinks::Find(const NodeId& node) const {
  const auto it = known_.find(node);
  return it == known_.end() ? nullptr : &it->second;
}

bool StandingLinks::IsPresent(const NodeId& node) const {
  const Known* known = Find(node);
  return known != nullptr && known->present;
}

void StandingLinks::UpdateSoon() {
  if (stopped_) return;
  if (look_timer_ == 0) {
    look_timer_ = loop_.After(options_.again, [this] { Look(); });
  }
  if (update_timer_ != 0) return;
  update_timer_ = loop_.After(options_.settle, [this] {
    update_timer_ = 0;
    Update();
  });
}

void StandingLinks::Update() {
  const std::vector<NodeId> paired = overlay_.LinksOf(options_.self);
  wanted_ = {paired.begin(), paired.end()};
  wanted_.insert(neighbours_.begin(), neighbours_.end());
  wanted_.insert(met_.begin(), met_.end());
  wanted_.erase(options_.self);
  ClaimWanted();
  ClaimCandidates();
}

void StandingLinks::ClaimWanted() {
  const Known* self = Find(options_.self);
  const bool dialable = self != nullptr && !self->addresses.empty();
  std::map<std::string, Claim> claims;
  for (const NodeId& node : wanted_) {
    const Known* known = Find(node);
    if (known == nullptr || !known->present) continue;
    absl::Duration hold = dialable && node < options_.self
                              ? options_.second_dials_after
                              : absl::ZeroDuration();
    for (const std::string& address : known->addresses) {
      if (!IsOwn(address)) claims.insert({address, Claim{node, hold}});
      hold += kBetweenAddresses;
    }
  }
  for (const auto& [address, claim] : claimed_) {
    const auto now = claims.find(address);
    // Another node is thought to answer there now: nothing is known of it.
    if (now == claims.end() || now->second.node != claim.node) {
      links_.Release(kForWanted, address);
    }
  }
  for (const auto& [address, claim] : claims) {
    const auto before = claimed_.find(address);
    if (before != claimed_.end() && before->second == claim) continue;
    links_.Claim(kForWanted, address, claim.node, claim.hold);
  }
  claimed_ = std::move(claims);
}

bool StandingLinks::IsCovered(const std::string& address,
                              const Candidate& candidate) const {
  if (IsOwn(address)) return true;
  if (!candidate.node.empty()) return IsPresent(candidate.node);
  return claimed_.count(address) > 0;
}

void StandingLinks::ClaimCandidates() {
  std::set<std::string> claims;
  for (auto& [address, candidate] : candidates_) {
    const auto known = links_.addresses().find(address);
    if (known != links_.addresses().end() && known->second.answered &&
        links_.IsUp(known->second.node)) {
      candidate.node = known->second.node;
    }
    if (!IsCovered(address, candidate)) claims.insert(address);
  }
  for (const std::string& address : claimed_candidates_) {
    if (claims.count(address) == 0) links_.Release(kForCandidates, address);
  }
  for (const std::string& address : claims) {
    if (claimed_candidates_.count(address) == 0) {
      links_.Claim(kForCandidates, address, candidates_.at(address).node);
    }
  }
  claimed_candidates_ = std::move(claims);
}

// -------------------------------------------------------- from time to time --

void StandingLinks::Look() {
  look_timer_ = loop_.After(options_.again, [this] { Look(); });
  Update();
  EndTries();
  TryDead();
  CloseUnwanted();
}

void StandingLinks::EndTries() {
  for (const std::string& address : tried_) {
    links_.Release(kForDead, address);
  }
  tried_.clear();
}

void StandingLinks::TryDead() {
  std::vector<std::pair<absl::Time, NodeId>> lost;
  for (const auto& [node, known] : known_) {
    if (known.lost != absl::InfiniteFuture())
      lost.emplace_back(known.lost, node);
  }
  if (lost.size() > kMostLost) {
    std::sort(lost.begin(), lost.end());
    lost.resize(lost.size() - kMostLost);
    for (const auto& [since, node] : lost) known_.erase(node);
  }
  std::vector<NodeId> due;
  for (const auto& [node, known] : known_) {
    if (known.dead && known.next_try <= loop_.Now() &&
        !known.addresses.empty()) {
      due.push_back(node);
    }
  }
  rng_.Shuffle(absl::MakeSpan(due));
  due.resize(std::min(due.size(), options_.tried_at_once));
  for (const NodeId& node : due) {
    Known& known = known_.at(node);
    known.next_try = loop_.Now() + known.pause * (0.5 + rng_.Uniform());
    known.pause = std::min(2 * known.pause, options_.again_at_most);
    for (const std::string& address : known.addresses) {
      if (IsOwn(address) || !tried_.insert(address).second) continue;
      links_.Claim(kForDead, address, node);
    }
  }
}

bool StandingLinks::IsClaimedByOthers(const NodeId& node) const {
  return std::any_of(links_.addresses().begin(), links_.addresses().end(),
                     [&](const auto& entry) {
                       const auto& [name, address] = entry;
                       return address.node == node &&
                              std::any_of(address.claims.begin(),
                                          address.claims.end(),
                                          [](const auto& claim) {
                                            return claim.first != kForWanted &&
                                                   claim.first != kForDead;
                                          });
                     });
}

void StandingLinks::CloseUnwanted() {
  std::map<NodeId, absl::Time> unwanted;
  for (const auto& [node, peer] : links_.peers()) {
    if (peer.link == 0 || !peer.dialled_by_us || wanted_.count(node) > 0 ||
        !IsPresent(node) || IsClaimedByOthers(node)) {
      continue;
    }
    const auto before = unwanted_.find(node);
    unwanted[node] = before == unwanted_.end() ? loop_.Now() : before->second;
  }
  unwanted_ = std::move(unwanted);
  std::vector<NodeId> over;
  for (const auto& [node, since] : unwanted_) {
    if (loop_.Now() - since >= options_.linger) over.push_back(node);
  }
  for (const NodeId& node : over) {
    unwanted_.erase(node);
    links_.Drop(node, absl::CancelledError(
                          "the network does not need this link any more"));
  }
}

}  // namespace dfl::runtime
