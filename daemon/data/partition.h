// How one data set is split among nodes for an experiment: a pure function of
// (kind, parameters, seed, node count, labels), so each node takes its own part
// without asking anyone. Index and count are the node's own settings, never its
// place in the membership.
#ifndef DFL_DATA_PARTITION_H_
#define DFL_DATA_PARTITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace dfl::data {

struct PartitionSpec {
  // none (all rows), iid, quantity, dirichlet, classes, explicit.
  std::string kind = "none";
  int64_t count = 1;  // parts
  int64_t index = 0;  // this node's part, in [0, count)
  uint64_t seed = 1;
  double theta = 0.5;            // dirichlet, quantity: concentration, > 0
  int64_t classes_per_node = 2;  // classes
  // explicit: [count] shares of all rows, >= 0, their sum at most 1.
  std::vector<double> sizes;
  // explicit: [count][classes] how each part is mixed, e.g. {1, 99}; empty: as
  // the data is.
  std::vector<std::vector<double>> ratios;
};

// Whether the split looks at class labels.
bool SplitsByLabel(const PartitionSpec& spec);

// Checks what does not depend on the data: the kind, the number of sizes and
// ratios, and their values.
// Errors: INVALID_ARGUMENT "partition.KEY: what was found; what is allowed".
absl::Status CheckPartition(const PartitionSpec& spec);

// The rows of part `spec.index`, increasing. Over all indices every row comes
// exactly once (explicit: at most once).
//   iid        a seeded shuffle, cut into equal parts (sizes differ by <= 1)
//   quantity   a seeded shuffle, cut into parts of sizes p ~ Dir(theta, ...)
//   dirichlet  class k is split by p_k ~ Dir(theta, ..., theta)
//   classes    each part holds classes_per_node classes; a class is cut equally
//              among the parts that hold it
//   explicit   part i has sizes[i] of all rows, of the classes in the
//              proportion ratios[i], both within one row. [DeceFL]
//              supplement, Table 3
// Errors: INVALID_ARGUMENT for bad parameters; FAILED_PRECONDITION when the
// part is empty (says which parameter to change), or when the explicit parts
// want more of a class than there is.
absl::StatusOr<std::vector<int64_t>> Partition(const PartitionSpec& spec,
                                               absl::Span<const int64_t> labels,
                                               int64_t classes);

}  // namespace dfl::data

#endif  // DFL_DATA_PARTITION_H_
