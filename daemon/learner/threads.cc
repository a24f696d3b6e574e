#include "daemon/learner/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <exception>

namespace dfl::learner {

void SetProcessThreads(int threads) {
  at::set_num_threads(threads);
  try {
    // LibTorch takes this once a process, before its first parallel work.
    if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
  } catch (const std::exception&) {
    // Somebody else was first. Nothing here uses inter-op threads.
  }
  // OpenBLAS reads OPENBLAS_NUM_THREADS when it is loaded, too early for us.
  using SetThreads = void (*)(int);
  const auto set_threads = reinterpret_cast<SetThreads>(
      ::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_threads != nullptr) set_threads(1);
}

void SetCallingThread(int threads) { at::set_num_threads(threads); }

}  // namespace dfl::learner
