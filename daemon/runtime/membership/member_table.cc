#include "daemon/runtime/membership/member_table.h"

#include "daemon/base/rng.h"

namespace dfl::runtime {

using ports::MemberState;
using ports::MemberUpdate;

namespace {

constexpr uint64_t kMostCount = uint64_t{1} << 53;
// By how many starts a statement may be ahead of what is known of a member.
// More is no honest node's, and would bring its name close to a count that
// cannot be outdone.
constexpr uint64_t kMostStartsAhead = uint64_t{1} << 20;

uint64_t HashOf(const NodeId& node) { return DeriveSeed(0, node.name()); }

// Makes it the next one. A count of refutations that is used up, as a forged
// statement may have it, goes on as one more start.
void Outdo(ports::MemberIncarnation& incarnation) {
  if (++incarnation.refutations < kMostCount) return;
  ++incarnation.starts;
  incarnation.refutations = 0;
}

// Of one incarnation, and of another memory: two nodes of one name, or one that
// has lost its state and counts its starts anew.
bool IsTwin(const MemberUpdate& update, const Member& member) {
  return update.state == MemberState::kAlive &&
         member.state == MemberState::kAlive && update.facts &&
         update.facts->memory != member.facts.memory;
}

bool InBounds(const ports::MemberIncarnation& incarnation) {
  return incarnation.starts < kMostCount &&
         incarnation.refutations < kMostCount;
}

}  // namespace

MemberTable::MemberTable(const NodeId& self, uint64_t starts,
                         const ports::MemberFacts& facts, absl::Time now)
    : self_(self) {
  Member& own = members_[self];
  own.incarnation.starts = starts;
  own.facts = facts;
  own.since = now;
  Count(self, own, 1);
}

const Member* MemberTable::Find(const NodeId& node) const {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : &found->second;
}

bool MemberTable::IsPresent(const NodeId& node) const {
  const Member* member = Find(node);
  return member != nullptr && member->present();
}

MemberUpdate MemberTable::StatementOn(const NodeId& node) const {
  const Member& member = members_.at(node);
  MemberUpdate update;
  update.node = node;
  update.incarnation = member.incarnation;
  update.state = member.state;
  update.by = member.by;
  if (member.present()) update.facts = member.facts;
  return update;
}

size_t MemberTable::BucketOf(const NodeId& node) {
  return HashOf(node) % ports::kDigestBuckets;
}

uint64_t MemberTable::digest() const {
  uint64_t digest = 0;
  for (const uint64_t bucket : buckets_) digest = Mix64(digest ^ bucket);
  return digest == 0 ? 1 : digest;
}

void MemberTable::Count(const NodeId& node, const Member& member, int sign) {
  ++changes_;
  if (!member.present()) return;
  const uint64_t name = HashOf(node);
  const uint64_t entry = Mix64(Mix64(Mix64(name ^ member.incarnation.starts) +
                                     member.incarnation.refutations) ^
                               member.facts.memory);
  uint64_t& bucket = buckets_[name % ports::kDigestBuckets];
  bucket = sign > 0 ? bucket + entry : bucket - entry;
  present_ += sign;
}

Merged MemberTable::Merge(const MemberUpdate& update, absl::Time now) {
  using Effect = Merged::Effect;
  if (!InBounds(update.incarnation)) return {};
  const auto found = members_.find(update.node);
  const uint64_t most =
      found == members_.end()
          ? kMostCount / 2
          : found->second.incarnation.starts + kMostStartsAhead;
  if (update.incarnation.starts > most) return {};
  // What others would refuse as well it does not make its own.
  if (update.node == self_) return MergeOwn(update);
  if (found == members_.end()) return MergeNew(update, now);
  Member& member = found->second;
  if (update.incarnation < member.incarnation) return {Effect::kOlder};
  MemberState state = update.state;
  if (update.incarnation == member.incarnation) {
    if (state < member.state) return {Effect::kOlder};
    if (IsTwin(update, member)) {
      if (update.facts->memory < member.facts.memory) return {Effect::kOlder};
    } else if (state == member.state) {
      const bool other = state == MemberState::kSuspect &&
                         update.by != member.by && !update.by.empty();
      return {other ? Effect::kConfirmed : Effect::kNone};
    }
  }
  if (state == MemberState::kDead && member.state == MemberState::kAlive) {
    state = MemberState::kSuspect;
  }
  const MemberState before = member.state;
  Count(update.node, member, -1);
  member.incarnation = update.incarnation;
  member.by = update.by;
  if (update.facts) member.facts = *update.facts;
  if (state != before) {
    member.state = state;
    member.since = now;
  }
  Count(update.node, member, 1);
  return {Effect::kChanged, before};
}

Merged MemberTable::MergeNew(const MemberUpdate& update, absl::Time now) {
  if (update.state > MemberState::kSuspect || !update.facts ||
      update.node.empty() || members_.size() >= kMostMembers) {
    return {};
  }
  Member& member = members_[update.node];
  member.incarnation = update.incarnation;
  member.state = update.state;
  member.facts = *update.facts;
  member.by = update.by;
  member.since = now;
  Count(update.node, member, 1);
  return {Merged::Effect::kChanged, std::nullopt};
}

Merged MemberTable::MergeOwn(const MemberUpdate& update) {
  using Effect = Merged::Effect;
  Member& own = members_.at(self_);
  if (update.incarnation < own.incarnation) return {Effect::kOlder};
  if (update.incarnation == own.incarnation && update.state == own.state &&
      (!update.facts || *update.facts == own.facts)) {
    return {};
  }
  Count(self_, own, -1);
  own.incarnation = update.incarnation;
  Outdo(own.incarnation);
  Count(self_, own, 1);
  return {Effect::kRefuted};
}

bool MemberTable::SetFacts(const ports::MemberFacts& facts) {
  Member& own = members_.at(self_);
  if (own.facts == facts || !own.present()) return false;
  Count(self_, own, -1);
  own.facts = facts;
  Outdo(own.incarnation);
  Count(self_, own, 1);
  return true;
}

void MemberTable::Leave(absl::Time now) {
  Member& own = members_.at(self_);
  Count(self_, own, -1);
  own.state = MemberState::kLeft;
  own.since = now;
}

std::vector<NodeId> MemberTable::Forget(absl::Time when) {
  std::vector<NodeId> forgotten;
  if (present_ == static_cast<int64_t>(members_.size())) return forgotten;
  for (auto it = members_.begin(); it != members_.end();) {
    if (it->second.present() || it->second.since > when || it->first == self_) {
      ++it;
      continue;
    }
    forgotten.push_back(it->first);
    it = members_.erase(it);
    ++changes_;
  }
  return forgotten;
}

}  // namespace dfl::runtime
