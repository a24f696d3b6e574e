// StandingLinks: which members this node stays linked with, and which addresses
// are dialled for that.
//
//   wanted       those whom the overlay pairs it with, its neighbours in the
//                graph, and those whom it has to meet for a while. Of two that
//                can be dialled the one with the smaller name dials at once,
//                the other when they are still not linked 1 s later.
//   candidates   addresses of discovery, until a present member has answered
//                there, and again when that one has gone.
//   dead ones    are tried now and then, ever more seldom, so that networks
//                that were split find each other again; the last kMostLost of
//                them also when the members have forgotten them.
//
// A link to a member that is none of these is closed after a while by the end
// that dialled it, unless somebody else claims its address.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_STANDING_LINKS_H_
#define DFL_RUNTIME_MEMBERSHIP_STANDING_LINKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/membership/overlay.h"

namespace dfl::runtime {

struct Member;

struct StandingLinksOptions {
  NodeId self;
  uint64_t seed = 1;
  // Changes of the view are gathered for so long.
  absl::Duration settle = absl::Milliseconds(200);
  // How much later the larger of two names dials.
  absl::Duration second_dials_after = absl::Seconds(1);
  // A link that nobody wants stays for so long.
  absl::Duration linger = absl::Seconds(30);
  // How often the addresses of dead members are looked at, how many members are
  // tried then, and for how long one is left alone at the most.
  absl::Duration again = absl::Seconds(5);
  size_t tried_at_once = 3;
  absl::Duration again_at_most = absl::Minutes(5);
};

class StandingLinks {
 public:
  // Of one source.
  static constexpr size_t kMostCandidates = 1024;
  // Forgotten members whose addresses are kept.
  static constexpr size_t kMostLost = 64;

  // All must outlive it.
  StandingLinks(StandingLinksOptions options, ports::Loop& loop, Links& links);
  ~StandingLinks();
  StandingLinks(const StandingLinks&) = delete;
  StandingLinks& operator=(const StandingLinks&) = delete;

  // `member` is new, or has changed; null: it was forgotten. This node's own
  // entry included: what it says of its addresses is whether it can be dialled.
  void OnMember(const NodeId& node, const Member* member);

  // With whom this node exchanges models.
  void SetNeighbours(std::vector<NodeId> neighbours);
  // With whom it needs a link until the next call, neighbours or not.
  void Meet(std::set<NodeId> nodes);
  // What `source` has found, all of it; of more than kMostCandidates the first.
  void SetCandidates(const std::string& source,
                     std::vector<std::string> addresses);
  // Wants nothing any more, and closes nothing.
  void Stop();

  void OnPeerUp(const NodeId& peer);
  void OnPeerDown();
  void OnAddressFailed(const std::string& address);

  const Overlay& overlay() const { return overlay_; }
  // Sorted; without this node.
  const std::set<NodeId>& wanted() const { return wanted_; }

 private:
  struct Known {
    std::vector<std::string> addresses;
    bool present = false;
    bool dead = false;
    absl::Time lost = absl::InfiniteFuture();  // since when it is forgotten
    absl::Duration pause;                      // between two tries
    absl::Time next_try;
  };
  struct Candidate {
    std::set<std::string> sources;
    NodeId node;  // who has answered there; may be empty
  };
  struct Claim {
    NodeId node;
    absl::Duration hold;

    friend bool operator==(const Claim&, const Claim&) = default;
  };

  // No member any more; where it died its addresses are kept.
  void OnForgotten(const NodeId& node);
  bool IsOwn(const std::string& address) const;
  const Known* Find(const NodeId& node) const;
  bool IsPresent(const NodeId& node) const;

  // Brings wanted_ and all claims up to date, soon.
  void UpdateSoon();
  void Update();
  void ClaimWanted();
  void ClaimCandidates();
  bool IsCovered(const std::string& address, const Candidate& candidate) const;
  // From time to time.
  void Look();
  void TryDead();
  void EndTries();
  void CloseUnwanted();
  bool IsClaimedByOthers(const NodeId& node) const;

  const StandingLinksOptions options_;
  ports::Loop& loop_;
  Links& links_;
  Rng rng_;
  Overlay overlay_;
  std::map<NodeId, Known> known_;  // this node included
  std::set<NodeId> neighbours_;
  std::set<NodeId> met_;  // as Meet says
  std::set<NodeId> wanted_;
  std::map<std::string, Candidate> candidates_;
  std::map<std::string, Claim> claimed_;      // for wanted_
  std::set<std::string> claimed_candidates_;  // for candidates_
  std::set<std::string> tried_;               // of dead members
  std::map<NodeId, absl::Time> unwanted_;     // linked ones, since when
  ports::TimerId update_timer_ = 0;
  ports::TimerId look_timer_ = 0;
  bool stopped_ = false;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_STANDING_LINKS_H_
