// Rules by which a node mixes its neighbours' models with its own when some of
// the neighbours may send whatever they like: broken, or hostile.
//
//   rule               the new value of coordinate l
//   mean               x_l + sum_j W_ij (w_j,l - x_l): no such rule
//   trimmed-mean       of all values at hand, its own among them, without the f
//                      smallest and the f largest: their mean.
//                      [Yin et al. 2018] Def. 2; [BRIDGE] over neighbours
//   median             of all values at hand the middle one, or the mean of the
//                      two in the middle. [Yin et al. 2018] Def. 1
//   centred-clipping   x_l + sum_j W_ij min(1, tau/|w_j - x|) (w_j,l - x_l).
//                      [ClippedGossip] eq. (3)
//
// What holds while at most f of the values of a coordinate are hostile:
//   - trimmed mean and median lie between the smallest and the largest of the
//     others, the node's own among them;
//   - under centred clipping a hostile model moves the node by at most
//     W_ij tau, where tau, unless it is given, is no larger than the distance
//     to the farthest honest model.
//
// A coordinate that has fewer than 2f + 1 values, its own among them, stays as
// it is: partial messages need not carry it. Trimmed mean and median look at no
// weight. All are computed on differences to the node's own value, so agreement
// is a fixed point in every format (remote_vector.h).
#ifndef DFL_CORE_VECTOR_AGGREGATION_H_
#define DFL_CORE_VECTOR_AGGREGATION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

enum class AggregationRule { kMean, kTrimmedMean, kMedian, kCentredClipping };

// "mean", "trimmed-mean", "median", "centred-clipping".
std::string ToString(AggregationRule rule);
// Errors: INVALID_ARGUMENT names the text found and what is allowed.
absl::StatusOr<AggregationRule> ParseAggregationRule(absl::string_view text);

// How models of neighbours are mixed; the plan's section `aggregation`.
struct AggregationSpec {
  AggregationRule rule = AggregationRule::kMean;
  // f: how many neighbours of a node may be hostile. Without meaning for the
  // mean.
  int64_t hostile = 1;
  // tau of centred clipping; 0: the (f + 1)-th largest distance of those at
  // hand.
  double radius = 0;

  // Whether it is another rule than the algorithm's own.
  bool robust() const { return rule != AggregationRule::kMean; }
  // How many values a coordinate needs, its own among them.
  int64_t values_needed() const { return 2 * hostile + 1; }

  friend bool operator==(const AggregationSpec& a, const AggregationSpec& b) {
    return a.rule == b.rule && a.hostile == b.hostile && a.radius == b.radius;
  }
};

// What a rule did.
struct Aggregated {
  int64_t left = 0;     // coordinates that had too few values
  int64_t clipped = 0;  // vectors that were shortened
};

// Mixes `vectors` into `own` [n] by `spec`, which is robust. `share` in (0, 1]
// is how far trimmed mean and median go from the node's own value to theirs;
// the weights of `vectors` say it for centred clipping.
// Cost: O(n m^2) for m vectors, centred clipping O(n m) in two passes; memory
// that does not grow with n.
Aggregated Aggregate(const AggregationSpec& spec,
                     absl::Span<const WeightedVector> vectors, double share,
                     absl::Span<float> own);

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_AGGREGATION_H_
