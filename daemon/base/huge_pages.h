// Large buffers in large pages. A fresh buffer is given to the process page by
// page as it is first written: for 45 MB that is 11,000 page faults, which in a
// virtual machine can take twenty times as long as the writing itself. Where
// the system grants huge pages on request, it is 22.
#ifndef DFL_BASE_HUGE_PAGES_H_
#define DFL_BASE_HUGE_PAGES_H_

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dfl {

// Asks for huge pages for what lies in [data, data + size), which the caller
// has allocated and not yet written. A hint: contents never change, nothing is
// committed early, and smaller buffers, refusals and other systems are ignored.
inline void AdviseHugePages(void* data, std::size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  if (size < 2 * kHugePage) return;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin =
      (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + size) / kHugePage * kHugePage;
  madvise(static_cast<char*>(data) + (begin - address), end - begin,
          MADV_HUGEPAGE);
#else
  (void)data;
  (void)size;
#endif
}

}  // namespace dfl

#endif  // DFL_BASE_HUGE_PAGES_H_
