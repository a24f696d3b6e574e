// The flat float32 buffers of a node: zero-initialised and aligned to a cache
// line, so that vector instructions and LibTorch's kernels like them.
#ifndef DFL_BASE_ALIGNED_VECTOR_H_
#define DFL_BASE_ALIGNED_VECTOR_H_

#include <cstddef>
#include <new>
#include <vector>

namespace dfl {

template <typename T, std::size_t kAlignment = 64>
struct AlignedAllocator {
  using value_type = T;
  template <typename U>
  struct rebind {
    using other = AlignedAllocator<U, kAlignment>;
  };

  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U, kAlignment>&) {}  // NOLINT

  T* allocate(std::size_t n) {
    return static_cast<T*>(
        ::operator new(n * sizeof(T), std::align_val_t(kAlignment)));
  }
  void deallocate(T* p, std::size_t) {
    ::operator delete(p, std::align_val_t(kAlignment));
  }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) {
    return true;
  }
  friend bool operator!=(const AlignedAllocator&, const AlignedAllocator&) {
    return false;
  }
};

// [n] float32.
using FlatVector = std::vector<float, AlignedAllocator<float>>;

}  // namespace dfl

#endif  // DFL_BASE_ALIGNED_VECTOR_H_
