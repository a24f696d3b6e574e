#include "daemon/learner/process_settings.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <malloc.h>

#include <exception>

namespace dfl::learner {
namespace {

// Each step frees its activations, megabytes each, and the next asks for the
// same again. glibc would return them to the system and get zeroed pages back,
// one fault for each 4 KiB: two thirds of the time of a small network's step.
// What stays is no more than the peak of one step.
void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kLargestHeapBlock = 32 << 20;  // the most glibc takes
  constexpr int kKept = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace

void SetProcess(int threads) {
  KeepFreedMemory();
  SetCallingThread(threads);
  try {
    // LibTorch takes this once a process, before its first parallel work.
    if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
  } catch (const std::exception&) {
    // Somebody else was first. Nothing here uses inter-op threads.
  }
  // Who loads LibTorch may have set OPENBLAS_NUM_THREADS before; here it is too
  // late for that.
  using SetThreads = void (*)(int);
  const auto set_threads = reinterpret_cast<SetThreads>(
      ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

void SetCallingThread(int threads) {
  thread_local int set = 0;
  if (set == threads) return;
  set = threads;
  at::set_num_threads(threads);
}

}  // namespace dfl::learner
