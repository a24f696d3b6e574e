// The drivers: each plays the golden runs of one kind of algorithm through the
// core objects and expects the states on record.
#ifndef DFL_TESTS_GOLDEN_DRIVERS_H_
#define DFL_TESTS_GOLDEN_DRIVERS_H_

#include <string>

#include "tests/golden/golden_case.h"

namespace dfl::golden {

using Driver = void (*)(const Case& golden);

// The driver of an algorithm of the catalogue; null: there is none.
Driver FindDriver(const std::string& algorithm);

// Models are pulled, and come in parts.
void RunPame(const Case& golden);
// Every node trains and pushes to its neighbours, or to nobody, and mixes.
void RunRounds(const Case& golden);
// A leader that is drawn anew every round mixes for all.
void RunSwarm(const Case& golden);
// The hub of a star mixes for all.
void RunFedmid(const Case& golden);
// Nodes push to members that are drawn anew every round.
void RunEpidemic(const Case& golden);
// Rounds end by the clock.
void RunClocked(const Case& golden);
// A node learns how much to trust the others from their predictions.
void RunKdPdfl(const Case& golden);
// There are no rounds.
void RunDraco(const Case& golden);
// Nor here; pairs agree on what both apply.
void RunGossip(const Case& golden);
// What is given away must arrive exactly once (core/rounds/mass_rounds.h):
// expects models, what the ledger conserves, what is measured beside x, what
// was sent, and for sgp omega.
void RunMass(const Case& golden);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_DRIVERS_H_
