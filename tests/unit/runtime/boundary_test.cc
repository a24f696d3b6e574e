// When the boundary is visited; snapshots of the model that is there.
#include "daemon/runtime/boundary.h"

#include <memory>
#include <vector>

#include "daemon/runtime/flat_model.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

TEST(BoundaryTest, IsVisitedOnceForAllCallsAndNeverFromInsideOne) {
  simports::SimScheduler scheduler;
  simports::SimLoop loop(scheduler);
  int visits = 0;
  auto boundary = std::make_unique<Boundary>(loop, [&visits] { ++visits; });
  boundary->Schedule();
  boundary->Schedule();
  EXPECT_EQ(visits, 0);
  scheduler.RunFor(absl::Seconds(1));
  EXPECT_EQ(visits, 1);
  boundary->Schedule();
  boundary.reset();
  scheduler.RunFor(absl::Seconds(1));
  EXPECT_EQ(visits, 1);
}

TEST(BoundaryTest, WorkThatIsPutOffDuringWorkWaitsForTheNextTime) {
  simports::SimScheduler scheduler;
  simports::SimLoop loop(scheduler);
  Boundary boundary(loop, [] {});
  EXPECT_TRUE(boundary.here());
  std::vector<int> done;
  boundary.PutOff([&] {
    done.push_back(1);
    boundary.PutOff([&] { done.push_back(3); });
  });
  boundary.PutOff([&] { done.push_back(2); });
  boundary.DoWork();
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  boundary.DoWork();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(FlatModelTest, OneSnapshotIsSharedUntilTheParametersChange) {
  FlatModel model;
  model.Resize(3, 2);
  const SnapshotPtr first = model.Share(true, 4);
  EXPECT_EQ(first->step, 4);
  EXPECT_EQ(model.Share(true, 4), first);
  model.parameters()[0] = 5;
  model.Changed();
  const SnapshotPtr second = model.Share(true, 5);
  EXPECT_EQ(first->parameters[0], 0);
  EXPECT_EQ(second->parameters[0], 5);
}

TEST(FlatModelTest, AwayFromTheBoundaryASnapshotHasTheBoundarysBuffers) {
  FlatModel model;
  model.Resize(3, 2);
  model.buffers()[1] = 1;
  model.LeaveBoundary();
  model.buffers()[1] = 2;
  EXPECT_EQ(model.Share(false, 0)->buffers[1], 1);
  EXPECT_EQ(model.CopyOf(model.parameters(), 0)->buffers[1], 2);
}

}  // namespace
}  // namespace dfl::runtime
