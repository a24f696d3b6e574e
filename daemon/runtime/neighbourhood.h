// With which neighbours models were exchanged in this run, and what speaks
// against exchanging them with the others: a neighbour is not linked (and why),
// it is in another run, its data contract or its algorithm is another one, it
// does not train, its messages are refused, or it is linked and silent. That a
// neighbour is slow is no reason: one that was not heard of for long is asked
// whether it lives.
//
// Loop only.
#ifndef DFL_RUNTIME_NEIGHBOURHOOD_H_
#define DFL_RUNTIME_NEIGHBOURHOOD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/contracts/contract_pulls.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"

namespace dfl::runtime {

class Neighbourhood {
 public:
  // All must outlive it.
  Neighbourhood(const OwnState& own, const PeerTable& peers, Links& links,
                ContractPulls& contracts, ports::Loop& loop)
      : own_(own),
        peers_(peers),
        links_(links),
        contracts_(contracts),
        loop_(loop) {}

  // A run begins: nothing was exchanged in it.
  void BeginRun();
  // A deadline passed without these.
  void OnMissed(const std::vector<NodeId>& peers);
  // Asks those that were not heard of for `long_ago`, or that have missed a
  // deadline since, whether they live.
  void AskTheSilent(absl::Duration long_ago);
  // Our digest or that of `peer` may be new: details of what differs are
  // fetched.
  void Compare(const NodeId& peer);

  // Those that the plan gives this node, with whom its algorithm exchanges
  // models: of all rounds, where the graph varies.
  std::vector<NodeId> Members() const;
  // Whether there are any in the present round.
  bool HasAny() const;

  // Models that came and were taken in this run: from one peer, from all. Of a
  // peer that only hears us, those that it took.
  bool ExchangedWith(const NodeId& peer) const;
  int64_t Exchanged() const;
  // It has ended the run that it was in with us.
  bool FinishedWithUs(const NodeId& peer) const;

  // What speaks against exchanging models with `neighbour`; "": nothing.
  std::string WhyNot(const NodeId& neighbour) const;

  // How `peer`, a member of our plan, means something else: another run,
  // another contract, another algorithm; with both sides' values, as far as
  // they are known. "": it does not. `cause`, unless null, is set to what
  // changes with what it says, and not with how much of it is known.
  std::string Disagreement(const NodeId& peer, std::string* cause) const;
  // The fields of the data contract in which `peer` differs, by name.
  std::vector<std::string> Differing(const NodeId& peer) const;

 private:
  // Models when the run began.
  struct Mark {
    int64_t sent = 0;
    int64_t received = 0;
  };

  int64_t ModelsOf(const NodeId& id, const PeerTable::Peer& peer) const;
  bool IsSilent(const NodeId& peer) const;
  std::string WhyNotLinked(const NodeId& peer) const;
  // What it said over its present link; null: nothing.
  const PeerTable::Peer* Known(const NodeId& peer) const;

  const OwnState& own_;
  const PeerTable& peers_;
  Links& links_;
  ContractPulls& contracts_;
  ports::Loop& loop_;

  std::map<NodeId, Mark> marks_;         // of the members
  std::map<NodeId, absl::Time> missed_;  // when, last
  std::map<NodeId, absl::Time> asked_;   // whether it lives, last
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_NEIGHBOURHOOD_H_
