#include "daemon/runtime/run_in_force.h"

#include <algorithm>
#include <utility>

#include "daemon/base/rng.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::runtime {
namespace {

bool Holds(const std::vector<core::Neighbour>& neighbours, const NodeId& peer) {
  return std::any_of(neighbours.begin(), neighbours.end(),
                     [&](const core::Neighbour& n) { return n.node == peer; });
}

}  // namespace

void RunInForce::Adopt(std::shared_ptr<const core::RunPlan> plan,
                       core::NodePlan node) {
  plan_ = std::move(plan);
  node_ = std::move(node);
  graph_number_ = 0;
  spectral_gap_.reset();
}

bool RunInForce::IsNeighbour(const NodeId& peer) const {
  return Holds(node_.neighbours, peer);
}

bool RunInForce::IsMember(const NodeId& peer) const {
  return plan_ != nullptr && core::PlaceOf(*plan_, peer).has_value();
}

bool RunInForce::MayTakePart(const NodeId& peer) const {
  return IsMember(peer) || follows_view();
}

bool RunInForce::follows_view() const {
  return plan_ != nullptr && core::FollowsView(*plan_);
}

bool RunInForce::MayPush(const NodeId& peer) const {
  if (plan_ == nullptr) return false;
  if (core::TopologyVaries(plan_->topology)) return IsMember(peer);
  if (!node_.algorithm ||
      node_.algorithm->graphs != core::GraphKind::kDirected) {
    return IsNeighbour(peer);
  }
  return Holds(node_.in_neighbours, peer);
}

bool RunInForce::Takes(const NodeId& peer) const {
  return MayPush(peer) || follows_view();
}

bool RunInForce::IsOfLaterGraph(int64_t round, int64_t present) const {
  return core::TopologyVaries(plan_->topology) &&
         round >= core::NextGraphRound(plan_->topology, present);
}

bool RunInForce::FollowTopology(int64_t round) {
  const int64_t number = core::GraphNumber(plan_->topology, round);
  if (number == graph_number_) return false;
  auto graph = core::PlanGraph(*plan_, round);
  if (!graph.ok()) return false;  // the plan was checked
  auto next = core::DeriveCheckedNodePlan(*plan_, *node_.algorithm, self_,
                                          *std::move(graph));
  if (!next.ok()) return false;
  graph_number_ = number;
  if (core::SameNeighbours(node_, *next)) return false;
  node_ = *std::move(next);
  return true;
}

uint64_t RunInForce::EdgeSeed(const NodeId& peer, int64_t round) const {
  const NodeId& a = std::min(self_, peer);
  const NodeId& b = std::max(self_, peer);
  return DeriveSeed(DeriveSeed(DeriveSeed(plan_->seed, a.name()), b.name()),
                    "edge", round);
}

double RunInForce::SpectralGap() const {
  if (!spectral_gap_.has_value()) {
    spectral_gap_ = core::SpectralGapIfSmall(*plan_);
  }
  return *spectral_gap_;
}

}  // namespace dfl::runtime
