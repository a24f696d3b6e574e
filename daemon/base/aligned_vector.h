// The flat float32 buffers of a node: zero-initialised, aligned to a cache
// line, so that vector instructions and LibTorch's kernels like them, and large
// ones in huge pages, since the first touch of 44.7 MB costs 130 ms in small
// ones.
#ifndef DFL_BASE_ALIGNED_VECTOR_H_
#define DFL_BASE_ALIGNED_VECTOR_H_

#include <cstddef>
#include <new>
#include <vector>

#include "daemon/base/huge_pages.h"

namespace dfl {

template <typename T, std::size_t kAlignment = 64>
struct AlignedAllocator {
  using value_type = T;
  template <typename U>
  struct rebind {  // NOLINT(readability-identifier-naming): the allocators'
    using other = AlignedAllocator<U, kAlignment>;
  };

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U, kAlignment>&) {}  // NOLINT

  T* allocate(std::size_t n) {
    void* memory = ::operator new(n * sizeof(T), AlignmentOf(n));
    AdviseHugePages(memory, n * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* p, std::size_t n) { ::operator delete(p, AlignmentOf(n)); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) {
    return true;
  }
  friend bool operator!=(const AlignedAllocator&, const AlignedAllocator&) {
    return false;
  }

 private:
  // Of a block of n: a huge page's for blocks that hold several.
  static std::align_val_t AlignmentOf(std::size_t n) {
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    return std::align_val_t(n * sizeof(T) >= 4 * kHugePage ? kHugePage
                                                           : kAlignment);
  }
};

// [n] float32.
using FlatVector = std::vector<float, AlignedAllocator<float>>;

}  // namespace dfl

#endif  // DFL_BASE_ALIGNED_VECTOR_H_
