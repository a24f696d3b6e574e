// How much of what the nodes of a network conserve together is missing. Only a
// simulator or a test can compute it, because it sees all nodes. A node sees
// its own edges only (MassLedger::Imbalance).
#ifndef DFL_SIMPORTS_MASS_DRIFT_H_
#define DFL_SIMPORTS_MASS_DRIFT_H_

#include <map>
#include <optional>

#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"

namespace dfl::simports {

// |sum_i z_i + what is in flight|_inf, z being MassRounds::conserved, whose sum
// is 0 (Spod-GT: z = y - v g; DEPOSITUM: y - beta g; K-GT: c; NIDS: -alpha D;
// BEER: V - grad), or D of gossip-nids. For push-sum it is |sum_i omega_i + in
// flight - m|. If it is not 0, except for rounding, mass was lost. Nullopt when
// the algorithm conserves nothing (CHOCO-SGD, D-PSGD) or `nodes` is empty.
//
// `nodes` run the same algorithm and are in one tracker epoch. A parcel counts
// at its sender until its receiver has it, whatever the sender knows.
// Cost: O(n) for each node and each parcel in flight.
std::optional<double> MassDrift(
    const std::map<NodeId, const core::Algorithm*>& nodes);

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_MASS_DRIFT_H_
