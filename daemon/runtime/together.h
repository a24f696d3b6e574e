// Whether this node learns together with its neighbours, and with which of
// them: "alone is not together".
//
// A neighbour *mixes* with this node when models of this run were exchanged
// with it and nothing speaks against more of them, see neighbourhood.h.
//
// The node is *alone* when its plan gives it neighbours, it trains, no model
// was exchanged for a while, and something speaks against each neighbour.
// Neighbours that have finished the run together with this node do not make it
// alone.
//
// What is new is reported once: see ports::Disagrees and ports::LearnsAlone.
//
// Loop only.
#ifndef DFL_RUNTIME_TOGETHER_H_
#define DFL_RUNTIME_TOGETHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/neighbourhood.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"

namespace dfl::runtime {

class Together {
 public:
  // All must outlive it. From here on the reason of a phase that ends a run
  // says whether the node learned alone.
  Together(OwnState& own, const PeerTable& peers, Neighbourhood& neighbourhood,
           ports::Loop& loop, ports::EventSink& events);
  ~Together();
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  // What `peer` says of itself is new.
  void OnState(const NodeId& peer);
  // At boundaries, and after orders: a plan may be new, or the phase.
  void Look();

  // Whether models are exchanged with `neighbour`; after the end of a run,
  // whether they were.
  bool Mixes(const NodeId& neighbour) const;
  // Why they are not; "" when they are.
  std::string NotMixing(const NodeId& neighbour) const;

  // Why the node learns alone, or did until the run ended; "": it does not.
  const std::string& alone() const { return alone_; }

  const Neighbourhood& neighbourhood() const { return neighbourhood_; }

 private:
  struct Disagreement {
    std::string cause;  // told, or about to be
    ports::TimerId timer = 0;
    bool told = false;
  };

  void LookAtPlan();
  void Tell(const NodeId& peer);
  absl::Duration Grace() const;
  void KeepTicking();
  void Tick();
  // "no model came from its 2 neighbours, because ..."; "" unless something
  // speaks against each.
  std::string AloneText() const;
  void SetAlone(std::string why);
  // At the end of a run: what is added to the reason.
  std::string EndNote();

  OwnState& own_;
  const PeerTable& peers_;
  Neighbourhood& neighbourhood_;
  ports::Loop& loop_;
  ports::EventSink& events_;

  // The plan that was looked at last. It is held, so that no other one has its
  // place in memory.
  std::shared_ptr<const core::RunPlan> plan_;
  std::map<NodeId, Disagreement> disagreements_;

  bool starting_ = false;  // it was looking for a model to start from
  ports::TimerId timer_ = 0;
  int64_t seen_ = 0;  // models exchanged in the run, at the last look
  absl::Time since_ = absl::InfiniteFuture();  // nothing was exchanged
  int64_t last_step_ = 0;                      // at which something was
  std::string alone_;
  // With whom the run has ended; nullopt: it goes on.
  std::optional<std::set<NodeId>> ended_with_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TOGETHER_H_
