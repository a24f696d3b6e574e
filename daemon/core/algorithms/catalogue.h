// The catalogue: all algorithms that a plan may name.
#ifndef DFL_CORE_ALGORITHMS_CATALOGUE_H_
#define DFL_CORE_ALGORITHMS_CATALOGUE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm_info.h"

namespace dfl::core {

// A value: a copy has entries of its own. Entries stay where they are until Add
// is called; plans that were derived by a catalogue point to them.
class Catalogue {
 public:
  Catalogue() = default;
  explicit Catalogue(std::vector<AlgorithmInfo> entries);

  // In the order in which they were added.
  absl::Span<const AlgorithmInfo> entries() const { return entries_; }

  // The entry called `name`.
  // Errors: NOT_FOUND with the nearest name and all that there are.
  absl::StatusOr<const AlgorithmInfo*> Find(absl::string_view name) const;

  // Adds an entry with a factory and a name that no other has.
  void Add(AlgorithmInfo entry);

 private:
  std::vector<AlgorithmInfo> entries_;
};

// The algorithms of this program.
const Catalogue& BuiltInCatalogue();

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_CATALOGUE_H_
