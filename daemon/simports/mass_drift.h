// How far the nodes of a whole network are off what they conserve together: for
// who sees all of them, a simulator or a test. A node by itself sees its own
// edges only (MassLedger::Imbalance).
#ifndef DFL_SIMPORTS_MASS_DRIFT_H_
#define DFL_SIMPORTS_MASS_DRIFT_H_

#include <map>
#include <optional>

#include "daemon/base/ids.h"
#include "daemon/core/rounds/mass_rounds.h"

namespace dfl::simports {

// |sum_i z_i + what is in flight|_inf, z being MassRounds::conserved, whose sum
// is 0 (Spod-GT: z = y - v g; DEPOSITUM: y - beta g; K-GT: c; NIDS: -alpha D;
// BEER: V - grad); of push-sum |sum_i omega_i + in flight - m|. 0 but for
// rounding, or mass was lost. Nullopt when the algorithm conserves nothing
// (CHOCO-SGD) or `nodes` is empty.
//
// `nodes` run the same algorithm and are of one tracker epoch. A parcel counts at
// its giver until its taker has it, whatever the giver knows. Costs O(n) a node
// and parcel in flight.
std::optional<double> MassDrift(
    const std::map<NodeId, const core::MassRounds*>& nodes);

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_MASS_DRIFT_H_
