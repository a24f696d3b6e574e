#include "daemon/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace dfl {

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s (this is a bug in dfld)\n",
               file, line, condition);
  std::abort();
}

}  // namespace dfl
