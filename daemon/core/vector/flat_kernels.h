// The last step of mixing, in vectors (Highway), for each instruction set of
// the machine; codec/value_kernels.h tells how that is chosen. The same bits on
// all: the same IEEE operations, one value at a time, in no other order.
#ifndef DFL_CORE_VECTOR_FLAT_KERNELS_H_
#define DFL_CORE_VECTOR_FLAT_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace dfl::core::kernels {

// own[i] += sum[i] / counts[i] where counts[i] > 0; a quotient of 0 leaves
// every bit, that of -0 too. Then sum and counts are 0 again. Lines of `own`
// where nothing came are not touched.
void AddMeans(float* sum, int32_t* counts, size_t size, float* own);

// own[i] += sum[i], likewise.
void AddSums(float* sum, size_t size, float* own);

}  // namespace dfl::core::kernels

#endif  // DFL_CORE_VECTOR_FLAT_KERNELS_H_
