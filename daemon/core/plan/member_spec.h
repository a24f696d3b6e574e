// What a plan needs to know of a member of the network.
#ifndef DFL_CORE_PLAN_MEMBER_SPEC_H_
#define DFL_CORE_PLAN_MEMBER_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/base/ids.h"

namespace dfl::core {

// The most members of a plan: as many as a node's table of the network holds
// (runtime/membership/member_table.h).
inline constexpr size_t kMostPlanMembers = 16384;

// What a node does in a run.
enum class Participation {
  kTrain = 1,    // trains and mixes
  kMix = 2,      // mixes without data of its own
  kObserve = 3,  // watches and answers; nobody's neighbour
};

struct MemberSpec {
  NodeId node;
  // Training rows of this member; 0 = not told (then sample weighting is
  // refused).
  int64_t rows = 0;
  // Others can dial it. Of two that cannot be dialled there is no edge, where
  // the topology leaves a choice.
  bool dialable = true;
  Participation participation = Participation::kTrain;
  std::map<std::string, std::string> labels = {};

  friend bool operator==(const MemberSpec& a, const MemberSpec& b) {
    return a.node == b.node && a.rows == b.rows && a.dialable == b.dialable &&
           a.participation == b.participation && a.labels == b.labels;
  }
};

// Who takes part in a run, among the members of the network.
struct ParticipantsSpec {
  enum class Kind {
    kFixed,     // the named set, whoever of them is there
    kSelected,  // those of the present members that one of `selectors` names
    kAll,       // all present members
  };
  Kind kind = Kind::kFixed;
  // "box-1" is a name, "site=north" a label; sorted, no doubles.
  std::vector<std::string> selectors;

  friend bool operator==(const ParticipantsSpec& a, const ParticipantsSpec& b) {
    return a.kind == b.kind && a.selectors == b.selectors;
  }
};

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_MEMBER_SPEC_H_
