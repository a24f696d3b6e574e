#include "daemon/app/compute/bounded_processors.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace {

std::atomic<long> bound{0};  // 0: none

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): glibc's name.
extern "C" long sysconf(int name) noexcept {
  using Sysconf = long (*)(int);
  static const auto kReal =
      reinterpret_cast<Sysconf>(::dlsym(RTLD_NEXT, "sysconf"));
  const long found = kReal(name);
  const long most = bound.load(std::memory_order_relaxed);
  const bool counts =
      name == _SC_NPROCESSORS_CONF || name == _SC_NPROCESSORS_ONLN;
  return counts && most > 0 ? std::min(found, most) : found;
}

namespace dfl::app {

void BoundProcessors(int count) { bound.store(count); }

}  // namespace dfl::app
