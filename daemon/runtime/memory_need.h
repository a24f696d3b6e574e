// What a node needs to run a plan, in bytes and part by part, before it runs
// it. The worst case of what is bounded: every link so slow that all waits that
// may wait (core::EdgeCost), each neighbour with vectors of its own. Not in it:
// what the learner needs for one mini-batch, and what a hostile neighbour may
// add (limits.max_transfers_per_peer bounds that).
//
// With n parameters, b buffers, M = 4 (n + b), m = bytes of one model in the
// plan's format:
//   model and gradient            4 (2 n + b)
//   the algorithm's own vectors   4 n extra_vectors
//   a snapshot                    M, where anything is exchanged
//   for each neighbour sent to    4 n given + M sent, one more n where mass is
//                                 lossy and where top-k ranks against what was
//                                 sent; two windows of each message out
//   for each neighbour heard      4 n taken + m waiting; a message and a window
//                                 in
//   a checkpoint being written    M + 4 n (1 + extra_vectors), and the vectors
//                                 given and taken of every edge
#ifndef DFL_RUNTIME_MEMORY_NEED_H_
#define DFL_RUNTIME_MEMORY_NEED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/ports/learner.h"

namespace dfl::runtime {

// A part, for a person: "model and gradient", "for 7 neighbours: vectors".
struct MemoryPart {
  std::string what;
  int64_t bytes = 0;
};

struct MemoryNeed {
  std::vector<MemoryPart> parts;  // none is 0
  int64_t total = 0;              // their sum
  int64_t message = 0;            // m
};

// What the plan's node needs. `base`: what the program takes by itself, put
// first; 0: not counted. Where the topology varies, neighbours are all those
// that it has in one round or another: what was given to one, and its replica,
// outlive the round.
// Errors: as core::CountNeighbours.
absl::StatusOr<MemoryNeed> NeedOf(const core::DerivedPlan& derived,
                                  const ports::ModelInfo& model,
                                  const ports::DataInfo& data,
                                  int64_t base = 0);

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMORY_NEED_H_
