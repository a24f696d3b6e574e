#include "daemon/core/algorithm/node_plan.h"

namespace dfl::core {

bool SameNeighbours(const NodePlan& a, const NodePlan& b) {
  return a.neighbours == b.neighbours && a.self_weight == b.self_weight &&
         a.in_neighbours == b.in_neighbours &&
         a.out_neighbours == b.out_neighbours;
}

}  // namespace dfl::core
