#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

void PlayRound(GoldenNetwork& net, const json& step, int64_t k) {
  for (size_t i = 0; i < net.size(); ++i) {
    net.batches(i).push_back(ReadBatch(step.at("batch").at(i)));
    for (size_t j = 0; j < net.size(); ++j) {
      std::vector<int64_t>& places =
          net.decisions(i).together["receivers of " + net.name(j).name()];
      places.clear();
      // Places among the members without the sender.
      for (const json& to : step.at("sends").at(j)) {
        const auto place = to.get<int64_t>();
        places.push_back(place < static_cast<int64_t>(j) ? place : place - 1);
      }
    }
  }
  net.NewRoundOfAll();
  net.RunAll();
  ASSERT_EQ(net.pushes().size(), net.size());
  net.ExpectPushesOf(k);
  for (const auto& push : net.pushes()) {
    EXPECT_EQ(push.to, Named(step.at("sends").at(push.from)));
  }
  net.ExpectNobodyMissed();
  net.ExpectAllDone();
  const State* want = net.golden().StateAfter(k);
  for (size_t i = 0; want != nullptr && i < net.size(); ++i) {
    ExpectRow(*want, "avg", i, net.trained_from(i));
    ExpectRow(*want, "x", i, net.parameters(i));
  }
}

}  // namespace

void RunEpidemic(const Case& golden) {
  GoldenNetwork net(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < net.size(); ++i) {
    core::NodePlan plan =
        MakePlan("epidemic", static_cast<int64_t>(i), KnobsOf(golden));
    for (size_t j = 0; j < net.size(); ++j) {
      if (j != i) plan.neighbours.push_back({net.name(j), 0});
    }
    net.AddNode(i, std::move(plan), golden.at("x0").at(i));
    net.LinkUp(i);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayRound(net, step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden
