// Frames of membership: who is there, and questions that travel over several
// links. Part of ports/frames.h.
#ifndef DFL_PORTS_MEMBER_FRAMES_H_
#define DFL_PORTS_MEMBER_FRAMES_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/core/plan/member_spec.h"

namespace dfl::ports {

// Bounds of what members say of themselves.
inline constexpr size_t kMaxMemberAddresses = 4;
inline constexpr int64_t kMaxAddressBytes = 300;
inline constexpr size_t kMaxLabels = 16;
inline constexpr int64_t kMaxReasonBytes = 256;
// Of one MembersFrame.
inline constexpr size_t kMaxMembersInFrame = 256;
// Of a MembersDigestFrame.
inline constexpr size_t kDigestBuckets = 16;
// Links that a routed frame may pass.
inline constexpr int32_t kMaxHops = 16;
// Of an answer to a query: the whole of it, and a part of it.
inline constexpr int64_t kMaxAnswerBytes = 1 << 20;
inline constexpr int64_t kMaxAnswerPartBytes = 32 << 10;

// What the network believes of a member.
enum class MemberState {
  kAlive = 1,
  kSuspect = 2,  // does not answer; it may refute that
  kDead = 3,
  kLeft = 4,  // said goodbye
};

// What a member says of how it does.
enum class Condition {
  kJoining = 1,   // has no model of the run yet
  kWell = 2,      // takes part, or would
  kDegraded = 3,  // cannot do its part; MemberFacts::reason says why
  kDraining = 4,  // is about to leave; nobody's neighbour
};

// How patient membership is; see runtime/membership/preset.h.
enum class Pace { kLan = 1, kWan = 2, kCellular = 3 };

// Of two statements on one member the one with the larger incarnation holds.
struct MemberIncarnation {
  uint64_t starts = 0;       // how often it has started, from 1
  uint64_t refutations = 0;  // raised by whatever it says anew of itself

  friend auto operator<=>(const MemberIncarnation&,
                          const MemberIncarnation&) = default;
};

// What only a member itself says of itself.
struct MemberFacts {
  // "host:port" where others can dial it. Empty: it only dials out.
  std::vector<std::string> addresses;
  std::map<std::string, std::string> labels;  // of names, as NodeId's
  int64_t rows = 0;                           // of training data; 0: not told
  core::Participation participation = core::Participation::kTrain;
  Condition condition = Condition::kJoining;
  std::string reason;  // of kDegraded; printable
  Pace pace = Pace::kLan;
  uint64_t memory = 0;  // PeerIdentity::incarnation
  // The plan in force: its version, and the first 8 bytes of the hash of its
  // document. 0: none.
  uint64_t plan_version = 0;
  uint64_t plan_hash = 0;

  friend bool operator==(const MemberFacts&, const MemberFacts&) = default;
};

// A statement on a member.
struct MemberUpdate {
  NodeId node;
  MemberIncarnation incarnation;
  MemberState state = MemberState::kAlive;
  NodeId by;  // who says so; empty with kAlive and kLeft
  // With kAlive always.
  std::optional<MemberFacts> facts;

  friend bool operator==(const MemberUpdate&, const MemberUpdate&) = default;
};

// The way of a frame that is passed on from link to link.
struct Route {
  NodeId origin;
  NodeId target;
  int32_t hops = 0;  // links that it has passed, at most kMaxHops

  friend bool operator==(const Route&, const Route&) = default;
};

// Whether the target lives. The first who is to pass it on sends the origin a
// receipt.
struct ProbeFrame {
  Route route;
  uint64_t number = 0;  // of the probe, unique per origin and start
  uint64_t digest = 0;  // of what the origin knows of members; 0: not told
};

// From the one who was asked, or passed the question on, to who asked.
struct ProbeAckFrame {
  Route route;
  uint64_t number = 0;
  bool receipt = false;  // it was heard, and is passed on if there is a way
  uint64_t memory = 0;   // PeerIdentity::incarnation of who answers
  uint64_t digest = 0;   // as ProbeFrame's
};

// News of members, or all that the sender knows of a bucket.
struct MembersFrame {
  std::vector<MemberUpdate> members;  // at most kMaxMembersInFrame
};

// Hashes of what the sender knows, a bucket of names each. The receiver sends
// what it knows of buckets that differ.
struct MembersDigestFrame {
  std::vector<uint64_t> buckets;  // kDigestBuckets
  bool wants_answer = false;      // the receiver's own hashes
};

// A question to the target, such as for its whole status.
struct QueryFrame {
  Route route;
  uint64_t number = 0;  // unique per origin and start
  int32_t topic = 0;    // from 1; who answers knows what it means
  int64_t offset = 0;   // first byte wanted of the answer
};

// A part of the answer; from its target's end.
struct QueryPartFrame {
  Route route;
  uint64_t number = 0;
  int64_t total_bytes = 0;
  int64_t offset = 0;
  std::string data;   // within total_bytes
  std::string error;  // why there is no answer; "": there is one
};

const char* MemberStateName(MemberState state);
const char* ConditionName(Condition condition);
const char* PaceName(Pace pace);

}  // namespace dfl::ports

#endif  // DFL_PORTS_MEMBER_FRAMES_H_
