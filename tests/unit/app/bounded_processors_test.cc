// gRPC counts as many processors as it is told of.
#include "daemon/app/compute/bounded_processors.h"

#include <grpc/support/cpu.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace dfl::app {
namespace {

// gRPC asks once.
TEST(BoundProcessors, IsWhatSharedLibrariesSee) {
  const long all = ::sysconf(_SC_NPROCESSORS_CONF);
  const long page = ::sysconf(_SC_PAGESIZE);
  BoundProcessors(1);
  EXPECT_EQ(gpr_cpu_num_cores(), 1U);
  EXPECT_EQ(::sysconf(_SC_NPROCESSORS_ONLN), 1);
  EXPECT_EQ(::sysconf(_SC_PAGESIZE), page);
  BoundProcessors(1'000'000);
  EXPECT_EQ(::sysconf(_SC_NPROCESSORS_CONF), all);
  BoundProcessors(0);
  EXPECT_EQ(::sysconf(_SC_NPROCESSORS_CONF), all);
}

}  // namespace
}  // namespace dfl::app
