// Arithmetic on flat vectors, in blocks that fit the first-level cache, so that
// no operation needs a temporary of the model's size.
#ifndef DFL_CORE_VECTOR_FLAT_VECTOR_H_
#define DFL_CORE_VECTOR_FLAT_VECTOR_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/vector/remote_vector.h"

namespace dfl::core {

// y[l] += a x[l]; x and y have the same length.
void AddScaled(float a, absl::Span<const float> x, absl::Span<float> y);

// sum[l] += weight w[l] over the coordinates that `vector` carries. For what is
// no model (an update, say); models are mixed by differences. Cost as
// MixDifferences.
void AddValues(RemoteVector& vector, double weight, absl::Span<float> sum);

// y[l] = x[l] wherever x[l] is not 0.
void SetWhereNotZero(absl::Span<const float> x, absl::Span<float> y);

// The partial mean of PaME, in place:
//   own[l] <- mean of w_j[l] over the messages that carry l, and stays where
//   none does. [PaME] eq. (5)-(7), Alg. 2 l. 6; computed as own plus the mean
//   of the differences, so that agreement is a fixed point.
// A transmitted zero counts as transmitted (the paper's star).
// Cost: O(n + sum of carried); no allocation that grows with n.
void PartialMean(absl::Span<RemoteVector* const> messages,
                 absl::Span<float> own);

// How far a neighbour's vector is from `own` [n], over the coordinates that it
// carries.
struct Distance {
  double squares = 0;      // sum of (vector[l] - own[l])^2
  double own_squares = 0;  // sum of own[l]^2, over all l
};
// Cost: one pass over what is carried and over `own`.
Distance DistanceTo(RemoteVector& vector, absl::Span<const float> own);

// A neighbour's vector and the weight W_ij it gets.
struct WeightedVector {
  RemoteVector* vector = nullptr;
  double weight = 0;
};

// own[l] += sum_j weight_j (w_j[l] - own[l]) over the vectors that carry l:
// one row of W applied, with a missing value counting as no difference.
// Summed in the order given. Cost as PartialMean.
void MixDifferences(absl::Span<const WeightedVector> vectors,
                    absl::Span<float> own);

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_FLAT_VECTOR_H_
