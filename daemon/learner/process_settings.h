// Settings of the process and the calling thread that make LibTorch fast.
#ifndef DFL_LEARNER_PROCESS_SETTINGS_H_
#define DFL_LEARNER_PROCESS_SETTINGS_H_

namespace dfl::learner {

// Call once for the process. Sets:
//   - `threads` intra-op threads (>= 1) of the calling thread, and one inter-op
//     thread;
//   - one thread for OpenBLAS, if it is loaded: LibTorch already splits batches
//     among its own threads, and the two pools would fight;
//   - with glibc, that freed memory is kept for the next step and not returned
//     to the system.
void SetProcess(int threads);

// Sets the number of threads for the calling thread, since OpenMP keeps one for
// each thread. Costs nothing when it is so already.
void SetCallingThread(int threads);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PROCESS_SETTINGS_H_
