#include "daemon/learner/opening/library_settings.h"

#include <cstdlib>

namespace dfl::learner {

void SetLibraryEnvironment() {
  constexpr int kKeep = 0;  // what is there
  ::setenv("OMP_WAIT_POLICY", "passive", kKeep);
  ::setenv("OPENBLAS_NUM_THREADS", "1", kKeep);
}

}  // namespace dfl::learner
