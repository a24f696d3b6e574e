// How one data set is split among nodes for an experiment: a pure function of
// (kind, parameters, seed, node count, labels), so each node takes its own part
// without asking anyone. Index and count are the node's own settings, never its
// place in the membership.
#ifndef DFL_CORE_PARTITION_H_
#define DFL_CORE_PARTITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace dfl::core {

struct PartitionSpec {
  // none (all rows), iid, dirichlet, classes.
  std::string kind = "none";
  int64_t count = 1;  // parts
  int64_t index = 0;  // this node's part, in [0, count)
  uint64_t seed = 1;
  double theta = 0.5;            // dirichlet: concentration, > 0
  int64_t classes_per_node = 2;  // classes
};

// The rows of part `spec.index`, increasing. Over all indices every row comes
// exactly once.
//   iid        a seeded shuffle, cut into equal parts (sizes differ by <= 1)
//   dirichlet  class k is split by p_k ~ Dir(theta, ..., theta)
//   classes    each part holds classes_per_node classes; a class is cut equally
//              among the parts that hold it
// Errors: INVALID_ARGUMENT for bad parameters; FAILED_PRECONDITION when the
// part is empty (says which parameter to change).
absl::StatusOr<std::vector<int64_t>> Partition(const PartitionSpec& spec,
                                               absl::Span<const int64_t> labels,
                                               int64_t classes);

}  // namespace dfl::core

#endif  // DFL_CORE_PARTITION_H_
