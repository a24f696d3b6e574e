// The identity of a run. It follows from the run's first document, so that all
// nodes that are given one file are in one run: at once or one after the other,
// by a command or in their settings.
//
//   run   12 hex digits, a dash, and a counter: the first digits of the SHA-256
//         of the document, written in canonical form without who takes part,
//         its version and its run; and how many runs the network has begun
//   seed  follows from the run
//
// What a document says itself stands. What dflctl fills in beside the two, the
// data section, is not in the hash: it may differ from node to node, and then
// the nodes say so when they meet.
#ifndef DFL_CONFIG_RUN_IDENTITY_H_
#define DFL_CONFIG_RUN_IDENTITY_H_

#include <cstdint>
#include <string>

#include "daemon/core/plan/run_plan.h"

namespace dfl::config {

// The run that a node is in; run_id "": it is in none.
struct ContinuedRun {
  std::string run_id;
  uint64_t version = 0;  // of its plan
};

// The counter of the run that follows `before`; 1 where there is none. It is
// above those of all runs that the node has been in.
uint64_t NextRunCounter(const ContinuedRun& before);

// Gives `plan`, a document as its author wrote it, the run and the seed that it
// leaves open. Nothing else is known of it, so it need not be valid.
void IdentifyNewRun(uint64_t counter, core::RunPlan& plan);

// As IdentifyNewRun; but the first document of the run `before`, given again,
// goes on with that run.
void IdentifyRun(const ContinuedRun& before, core::RunPlan& plan);

}  // namespace dfl::config

#endif  // DFL_CONFIG_RUN_IDENTITY_H_
