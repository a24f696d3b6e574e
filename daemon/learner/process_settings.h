// Settings of the process and the calling thread that make LibTorch quick.
#ifndef DFL_LEARNER_PROCESS_SETTINGS_H_
#define DFL_LEARNER_PROCESS_SETTINGS_H_

namespace dfl::learner {

// Once for the process: `threads` intra-op threads (>= 1), one inter-op thread,
// OpenBLAS, where it is loaded, on one thread (LibTorch already splits batches
// among its own, and the two pools would fight), and, with glibc, freed memory
// kept for the next step instead of given back to the system.
void SetProcess(int threads);

// For the calling thread: OpenMP keeps its number of threads for each thread
// apart. Cheap, but not free: call when the thread changes.
void SetCallingThread(int threads);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PROCESS_SETTINGS_H_
