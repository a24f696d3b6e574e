// What a daemon sets for its process before anything else runs in it.
#ifndef DFL_APP_COMPUTE_PROCESS_LIMITS_H_
#define DFL_APP_COMPUTE_PROCESS_LIMITS_H_

namespace dfl::app {

// Call it first in main, while the process has one thread.
//   - glibc gets one arena for all threads: each would keep its own peak, eight
//     for each processor, for threads that serve whoever connects.
//   - Libraries that are loaded later (LibTorch, OpenMP, OpenBLAS) read how
//     they are to run from the environment, see learner/opening/
//     library_settings.h.
void SetProcessLimits();

}  // namespace dfl::app

#endif  // DFL_APP_COMPUTE_PROCESS_LIMITS_H_
