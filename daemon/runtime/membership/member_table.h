// MemberTable: what a node believes of all members, and which of two statements
// on a member holds.
//
//   - The one with the larger incarnation. Of one incarnation: left before dead
//     before suspect before alive.
//   - Of two that are alive with one incarnation that with the larger memory,
//     so that all know the same of two nodes of one name.
//   - A member that is thought alive is not dead because one says so: it is
//     suspect first, and may refute that.
//   - A member that is not known enters the table by a statement with its
//     facts, alive or suspect.
//   - What others say of this node is refuted, if it is not older than what the
//     node says itself and another thing: by a larger incarnation.
//   - Dead members and those that left stay for a while, so that an old
//     statement does not bring them back.
//
// Its digest is equal where the same members are present with the same
// incarnations and memories. It is kept up to date with each change, at a cost
// that does not grow with the table.
//
// Loop only; reads no clock and sends nothing.
#ifndef DFL_RUNTIME_MEMBERSHIP_MEMBER_TABLE_H_
#define DFL_RUNTIME_MEMBERSHIP_MEMBER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/member_frames.h"

namespace dfl::runtime {

// A member as this node believes it to be.
struct Member {
  ports::MemberIncarnation incarnation;
  ports::MemberState state = ports::MemberState::kAlive;
  ports::MemberFacts facts;
  absl::Time since;  // when it entered its state, by this node's clock
  NodeId by;         // who says that it is suspect or dead

  // Alive, or not yet known to be dead.
  bool present() const {
    return state == ports::MemberState::kAlive ||
           state == ports::MemberState::kSuspect;
  }
};

// Beyond so many no new ones are taken in.
inline constexpr size_t kMostMembers = 16384;

// What a statement did.
struct Merged {
  enum class Effect {
    kNone,       // it was known, is about nobody known, or is out of bounds
    kOlder,      // the table knows better
    kConfirmed,  // one more suspects a suspect
    kChanged,    // the table has another entry
    kRefuted,    // it was about this node, whose incarnation is larger now
  };
  Effect effect = Effect::kNone;
  // With kChanged: the state before; nullopt: the member is new.
  std::optional<ports::MemberState> before = {};
};

class MemberTable {
 public:
  using Buckets = std::array<uint64_t, ports::kDigestBuckets>;

  // An empty table, of a node that is not a member.
  MemberTable() = default;
  MemberTable(const NodeId& self, uint64_t starts,
              const ports::MemberFacts& facts, absl::Time now);

  const std::map<NodeId, Member>& members() const { return members_; }
  // Null: not known.
  const Member* Find(const NodeId& node) const;
  bool IsPresent(const NodeId& node) const;
  int64_t present() const { return present_; }
  // Grows whenever an entry changes, comes or goes: as long as it stays, so do
  // all members.
  uint64_t changes() const { return changes_; }

  // What the table says of `node`, which is in it.
  ports::MemberUpdate StatementOn(const NodeId& node) const;

  Merged Merge(const ports::MemberUpdate& update, absl::Time now);

  // The node says something else of itself. False: it does that already, or has
  // left.
  bool SetFacts(const ports::MemberFacts& facts);
  // The node says goodbye.
  void Leave(absl::Time now);

  // Removes who is dead or left since before `when`, and returns them.
  std::vector<NodeId> Forget(absl::Time when);

  const Buckets& buckets() const { return buckets_; }
  // Of the whole; never 0.
  uint64_t digest() const;
  static size_t BucketOf(const NodeId& node);

 private:
  Merged MergeOwn(const ports::MemberUpdate& update);
  Merged MergeNew(const ports::MemberUpdate& update, absl::Time now);
  // Adds an entry to the digest and to the count, or takes it away. Called
  // before and after every change of an entry.
  void Count(const NodeId& node, const Member& member, int sign);

  NodeId self_;
  std::map<NodeId, Member> members_;
  int64_t present_ = 0;
  uint64_t changes_ = 0;
  Buckets buckets_{};
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_MEMBER_TABLE_H_
