// A neighbour's vector as it came over a link: the one thing an algorithm may
// do with it is to add its difference to the receiver's own vector.
//
// Agreement is a fixed point. Where an algorithm averages models it averages
// differences to its own value. The difference to a lossy message is
//   dec(received code) - dec(code of one's own value under the message's scale
//   and rounding draws, not clamped),
// which is unbiased and exactly 0 for equal values; equal models stay
// bit-identical in every format. (Decoding alone would drift; counting equal
// codes as zero would be biased.)
//
// Implementations: PlainRemoteVector here (fp32, for tests and the analytic
// problems) and those of codec/decoder.h.
#ifndef DFL_CORE_VECTOR_REMOTE_VECTOR_H_
#define DFL_CORE_VECTOR_REMOTE_VECTOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace dfl::core {

// Coordinates [begin, end) of a flat vector.
struct CoordinateRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

class RemoteVector {
 public:
  virtual ~RemoteVector() = default;

  // n, the length of the whole vector.
  virtual int64_t size() const = 0;

  // How many coordinates it carries, in [0, n].
  virtual int64_t carried() const = 0;

  // For each carried coordinate l in `range`, with i = l - range.begin:
  //   sum[i] += weight * (remote[l] - own[i]);  counts[i] += 1.
  // `own`, `sum` and `counts` have range.size() entries; `counts` may be empty
  // (not wanted). A transmitted zero counts as transmitted (the paper's star).
  // Fastest when ranges come in increasing order; any order is right.
  virtual void AddDifference(CoordinateRange range, absl::Span<const float> own,
                             float weight, absl::Span<float> sum,
                             absl::Span<int32_t> counts) = 0;

  // What adding AddDifference()'s sum of zeros to `own` would give, in place:
  //   own[i] += weight * (remote[l] - own[i]),
  // and where that is 0, every bit of own[i] stays. For one who mixes with a
  // single neighbour: only what came is touched, and once.
  virtual void MoveOwn(CoordinateRange range, float weight,
                       absl::Span<float> own);
};

// fp32 values at listed coordinates (increasing), or at all of them.
class PlainRemoteVector : public RemoteVector {
 public:
  // All n coordinates.
  explicit PlainRemoteVector(std::vector<float> values);
  // values[q] is coordinate coordinates[q] of a vector of length n.
  PlainRemoteVector(int64_t n, std::vector<int64_t> coordinates,
                    std::vector<float> values);

  int64_t size() const override { return n_; }
  int64_t carried() const override {
    return static_cast<int64_t>(values_.size());
  }
  void AddDifference(CoordinateRange range, absl::Span<const float> own,
                     float weight, absl::Span<float> sum,
                     absl::Span<int32_t> counts) override;

 private:
  int64_t n_;
  bool dense_;
  std::vector<int64_t> coordinates_;  // empty when dense
  std::vector<float> values_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_VECTOR_REMOTE_VECTOR_H_
