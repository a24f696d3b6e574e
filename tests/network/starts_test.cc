// Daemons that start at once with the same two seeds become one network, every
// time. DFL_STARTS says how often that is tried.
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/network/living_network.h"

namespace dfl::testing_support {
namespace {

constexpr int kDaemons = 8;

int Starts() {
  const char* set = std::getenv("DFL_STARTS");
  int starts = 100;
  if (set != nullptr && !absl::SimpleAtoi(set, &starts)) starts = 100;
  return starts;
}

TEST(SimultaneousStarts, EndInOneComponentEveryTime) {
  absl::Duration longest;
  for (int k = 0; k < Starts(); ++k) {
    LivingNetwork network;
    network.Add(kDaemons);
    ASSERT_TRUE(network.StartFrom(0)) << network.error();
    const absl::Duration took = network.UntilTablesAgree(absl::Seconds(20));
    ASSERT_LT(took, absl::Seconds(20))
        << "start " << k << ": " << network.error();
    longest = std::max(longest, took);
  }
  RecordProperty("longest_ms", absl::ToInt64Milliseconds(longest));
  std::cout << Starts() << " of " << Starts()
            << " starts ended in one component, at the latest "
            << absl::FormatDuration(longest) << " after the last was ready\n";
}

}  // namespace
}  // namespace dfl::testing_support
