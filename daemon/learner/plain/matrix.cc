#include "daemon/learner/plain/matrix.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace dfl::learner {
namespace {

constexpr int64_t kColumns = 16;  // of a panel
constexpr int64_t kRows = 4;      // of a tile

// Eight floats; the compiler makes of it what the processor has.
using Lanes [[gnu::vector_size(32)]] = float;

// Sums of one row of the result in one panel, in registers.
struct RowSums {
  Lanes left{};
  Lanes right{};

  [[gnu::always_inline]] void Add(float value, const Lanes& b_left,
                                  const Lanes& b_right) {
    left += value * b_left;
    right += value * b_right;
  }
  [[gnu::always_inline]] void Store(float* out) const {
    std::memcpy(out, &left, sizeof(left));
    std::memcpy(out + kColumns / 2, &right, sizeof(right));
  }
};

// out[r][j] = sum over t of a(r, t) panel[t][j], for four rows or one.
[[gnu::always_inline]] inline void FourRows(ConstMatrix a, const float* panel,
                                            int64_t k, float* out) {
  RowSums sums0, sums1, sums2, sums3;
  for (int64_t t = 0; t < k; ++t) {
    Lanes b[2];
    std::memcpy(&b, panel + t * kColumns, sizeof(b));
    const float* const value = a.data + t * a.across;
    sums0.Add(value[0], b[0], b[1]);
    sums1.Add(value[a.down], b[0], b[1]);
    sums2.Add(value[2 * a.down], b[0], b[1]);
    sums3.Add(value[3 * a.down], b[0], b[1]);
  }
  sums0.Store(out);
  sums1.Store(out + kColumns);
  sums2.Store(out + 2 * kColumns);
  sums3.Store(out + 3 * kColumns);
}
[[gnu::always_inline]] inline void OneRow(ConstMatrix a, const float* panel,
                                          int64_t k, float* out) {
  RowSums sums;
  for (int64_t t = 0; t < k; ++t) {
    Lanes b[2];
    std::memcpy(&b, panel + t * kColumns, sizeof(b));
    sums.Add(a.data[t * a.across], b[0], b[1]);
  }
  sums.Store(out);
}

// All m rows of one panel of `columns` columns.
[[gnu::always_inline]] inline void PanelProduct(int64_t m, int64_t columns,
                                                int64_t k, ConstMatrix a,
                                                const float* panel, Matrix c) {
  float out[kRows * kColumns];
  for (int64_t i = 0; i < m; i += kRows) {
    const ConstMatrix rows = {a.data + i * a.down, a.down, a.across};
    const int64_t count = std::min(kRows, m - i);
    if (count == kRows) {
      FourRows(rows, panel, k, out);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        OneRow({rows.data + r * a.down, a.down, a.across}, panel, k,
               out + r * kColumns);
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = 0; j < columns; ++j) {
        c.data[(i + r) * c.down + j * c.across] = out[r * kColumns + j];
      }
    }
  }
}

using Product = void (*)(int64_t m, int64_t columns, int64_t k, ConstMatrix a,
                         const float* panel, Matrix c);

void BaseProduct(int64_t m, int64_t columns, int64_t k, ConstMatrix a,
                 const float* panel, Matrix c) {
  PanelProduct(m, columns, k, a, panel, c);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void Avx2Product(int64_t m, int64_t columns,
                                                 int64_t k, ConstMatrix a,
                                                 const float* panel, Matrix c) {
  PanelProduct(m, columns, k, a, panel, c);
}

Product BestProduct() {
  return __builtin_cpu_supports("avx2") ? Avx2Product : BaseProduct;
}
#else
Product BestProduct() { return BaseProduct; }
#endif

}  // namespace

void Multiplier::Multiply(int64_t m, int64_t n, int64_t k, ConstMatrix a,
                          ConstMatrix b, Matrix c) {
  static const Product kProduct = BestProduct();
  const auto size = static_cast<size_t>(k * kColumns);
  if (panel_.size() < size) panel_.resize(size);
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t columns = std::min(kColumns, n - j);
    for (int64_t t = 0; t < k; ++t) {
      const float* const from = b.data + t * b.down + j * b.across;
      float* const to = panel_.data() + t * kColumns;
      for (int64_t l = 0; l < columns; ++l) to[l] = from[l * b.across];
      std::fill(to + columns, to + kColumns, 0.0F);
    }
    kProduct(m, columns, k, a, panel_.data(),
             {c.data + j * c.across, c.down, c.across});
  }
}

}  // namespace dfl::learner
