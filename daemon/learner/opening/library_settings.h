// How the libraries under LibTorch are to run; they read it from the
// environment when they are loaded.
#ifndef DFL_LEARNER_OPENING_LIBRARY_SETTINGS_H_
#define DFL_LEARNER_OPENING_LIBRARY_SETTINGS_H_

namespace dfl::learner {

// Sets what the environment does not say already. Call it first in main, while
// the process has one thread.
//   OMP_WAIT_POLICY=passive  threads of OpenMP sleep at a barrier; by default
//                            they spin there, on processors that others need
//   OPENBLAS_NUM_THREADS=1   LibTorch splits batches among its own threads, and
//                            the two pools would fight
void SetLibraryEnvironment();

}  // namespace dfl::learner

#endif  // DFL_LEARNER_OPENING_LIBRARY_SETTINGS_H_
