// Runs a piece of a test with each instruction set that this machine has and
// the code was compiled for (daemon/codec/value_kernels.h).
#ifndef DFL_TESTS_SUPPORT_EACH_TARGET_H_
#define DFL_TESTS_SUPPORT_EACH_TARGET_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace dfl {

template <typename F>
void ForEachTarget(F f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace dfl

#endif  // DFL_TESTS_SUPPORT_EACH_TARGET_H_
