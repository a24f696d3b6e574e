// All algorithms that there are.
#ifndef DFL_CORE_ALGORITHMS_CATALOGUE_H_
#define DFL_CORE_ALGORITHMS_CATALOGUE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"

namespace dfl::core {

// All algorithms, by name.
absl::Span<const AlgorithmInfo> AlgorithmCatalogue();

// The entry called `name`.
// Errors: NOT_FOUND with the nearest name and all that there are.
absl::StatusOr<const AlgorithmInfo*> FindAlgorithm(absl::string_view name);

// A new state machine; `decisions` must outlive it.
// Errors: NOT_FOUND as FindAlgorithm.
absl::StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(
    absl::string_view name, AlgorithmContext context, Decisions& decisions);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_CATALOGUE_H_
