#include "daemon/app/compute/process_limits.h"

#include <malloc.h>

#include "daemon/learner/opening/library_settings.h"

namespace dfl::app {

void SetProcessLimits() {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 1);
#endif
  learner::SetLibraryEnvironment();
}

}  // namespace dfl::app
