// What a node has of its own: the run it is in, its model, the algorithm that
// moves the model, and where in its life it is. The parts that deal with
// neighbours and with training all look at it, and nobody else does.
//
// Loop only.
#ifndef DFL_RUNTIME_OWN_STATE_H_
#define DFL_RUNTIME_OWN_STATE_H_

#include <functional>
#include <utility>

#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/algorithm_driver.h"
#include "daemon/runtime/boundary.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/phases.h"
#include "daemon/runtime/progress.h"
#include "daemon/runtime/run_in_force.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

// What a node sends in place of its model, as a member does that is hostile;
// null: the model. Nothing in a daemon sets it: tests and the simulator do.
using Forge = std::function<SnapshotPtr(const SnapshotPtr& model)>;

struct OwnState {
  // `phase_changed` and `at_boundary`: see Phases and Boundary. All must
  // outlive it.
  OwnState(NodeId node, ports::Loop& loop, ports::EventSink& events,
           Actor& actor, std::function<void()> phase_changed,
           std::function<void()> at_boundary, Forge forged = nullptr)
      : self(std::move(node)),
        forge(std::move(forged)),
        run(self),
        phases(loop, events, progress, std::move(phase_changed)),
        boundary(loop, std::move(at_boundary)),
        algorithm(loop, actor) {}

  // Whether the parameters hold w^k.
  bool Settled() const {
    return model.initialised() &&
           (!algorithm.get() || algorithm.get()->parameters_settled());
  }
  // The model w^k. Only while Settled().
  SnapshotPtr TakeSnapshot() {
    return model.Share(boundary.here(), algorithm.step(),
                       algorithm.pace().steps);
  }
  // What neighbours are sent for `snapshot`.
  SnapshotPtr Sent(SnapshotPtr snapshot) const {
    return forge ? forge(snapshot) : snapshot;
  }
  // Passes over the node's rows.
  double Epochs() const { return progress.epochs().At(algorithm.pace().steps); }
  void LeaveBoundary() {
    boundary.Leave();
    model.LeaveBoundary();
  }

  const NodeId self;
  const Forge forge;
  RunInForce run;
  Progress progress;
  Phases phases;
  Boundary boundary;
  bool diverged = false;  // the model has blown up: nobody is given it
  // It stands still at a boundary until it ends, and a checkpoint says so.
  bool suspended = false;
  FlatModel model;  // before the algorithm, which holds views of it
  AlgorithmDriver algorithm;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_OWN_STATE_H_
