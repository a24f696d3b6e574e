// Products of small matrices in float32, the same bits on every processor: each
// value is one sum over t = 0, 1, ..., in that order, without fused
// multiply-add. Vectors lie along the columns of the result, so their width
// changes nothing.
#ifndef DFL_LEARNER_PLAIN_MATRIX_H_
#define DFL_LEARNER_PLAIN_MATRIX_H_

#include <cstdint>
#include <vector>

namespace dfl::learner {

// Element (i, j) is data[i * down + j * across].
struct ConstMatrix {
  const float* data;
  int64_t down;
  int64_t across;
};
struct Matrix {
  float* data;
  int64_t down;
  int64_t across;
};

// Thread-compatible. Its memory grows to the largest product and is kept.
class Multiplier {
 public:
  // c(i, j) = sum over t of a(i, t) b(t, j); a is [m x k], b [k x n], c [m x n]
  // and shares no memory with them.
  // Cost: 2 m n k operations, n rounded up to 16, and a copy of b.
  void Multiply(int64_t m, int64_t n, int64_t k, ConstMatrix a, ConstMatrix b,
                Matrix c);

 private:
  std::vector<float> panel_;  // 16 columns of b, row by row
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PLAIN_MATRIX_H_
