// What every algorithm of the catalogue counts as a step and as a round.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/unit/core/four_nodes.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

// With the knobs of FourNodes: K = 2, B = 2, T0 = 2, kappa = 3, T_ex = 3, whole
// epochs of 12 rows in one batch.
struct Known {
  int64_t steps;
  int64_t rounds;
};
constexpr int64_t kIterations = 13;

const std::map<std::string, Known>& Expected() {
  static const auto& known = *new std::map<std::string, Known>{
      {"anq-nids", {26, 13}},  {"beer", {14, 13}},
      {"choco-sgd", {13, 13}}, {"d-psgd", {13, 13}},
      {"decefl", {13, 13}},    {"depositum", {13, 6}},
      {"dfedavgm", {26, 13}},  {"dfedsam", {26, 13}},
      {"draco", {26, 13}},     {"epidemic", {13, 13}},
      {"fedavg", {13, 13}},    {"fedavg+", {13, 13}},
      {"fedmid", {26, 13}},    {"g-push-pull", {14, 13}},
      {"k-gt", {26, 13}},      {"local", {13, 0}},
      {"nids", {13, 13}},      {"pame", {13, 5}},
      {"push-pull", {14, 13}}, {"sgp", {13, 13}},
      {"spod-gt", {14, 13}},   {"sporadic-k-gt", {14, 13}},
      {"swarm", {13, 13}},     {"sync-dsgd", {13, 13}},
  };
  return known;
}

class PaceOf : public testing::TestWithParam<std::string> {};

TEST_P(PaceOf, IsWhatItsEntrySays) {
  const AlgorithmInfo& info = **BuiltInCatalogue().Find(GetParam());
  EXPECT_THAT(info.pace, testing::HasSubstr("step"));
  EXPECT_THAT(info.pace, testing::HasSubstr("ound"));
  FourNodes network(info);
  network.RunToStep(kIterations);
  const auto known = Expected().find(GetParam());
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    const Algorithm& algorithm = network.algorithm(i);
    SCOPED_TRACE(i);
    ASSERT_EQ(algorithm.step(), kIterations);
    if (info.round_is_iteration && info.exchange != Exchange::kNone) {
      EXPECT_EQ(algorithm.rounds(), kIterations);
    }
    if (known != Expected().end()) {
      EXPECT_EQ(algorithm.gradients(), known->second.steps);
      EXPECT_EQ(algorithm.rounds(), known->second.rounds);
    } else if (GetParam() == "kd-pdfl") {
      // Every third iteration from the third on, at each node others.
      EXPECT_EQ(algorithm.gradients() + algorithm.rounds(), kIterations);
      EXPECT_GE(algorithm.rounds(), 3);
      EXPECT_LE(algorithm.rounds(), 4);
    } else {  // clocked: late gradients
      EXPECT_LE(algorithm.gradients(), kIterations);
      EXPECT_GE(algorithm.gradients(), 1);
    }
  }
}

// A node that joins at an iteration counts what lies behind the others there.
TEST_P(PaceOf, OfAJoinerIsThatOfTheOthers) {
  const AlgorithmInfo& info = **BuiltInCatalogue().Find(GetParam());
  FourNodes network(info);
  network.RunToStep(kIterations);
  const Pace pace = network.algorithm(2).pace();
  const std::unique_ptr<Algorithm> joined = network.MakeAlgorithm(2);
  RecordedActions ignored;
  joined->Handle(Started{kIterations}, ignored);
  // How many steps lie between two rounds is chance in one.
  if (!info.offers) {
    EXPECT_EQ(joined->rounds(), pace.rounds);
  }
  if (info.steps_of == nullptr) {
    // Those that begin with two gradients do so again.
    EXPECT_NEAR(static_cast<double>(joined->gradients()),
                static_cast<double>(pace.steps), 1);
  }
  // With what another algorithm of the same run has counted, it goes on.
  const std::unique_ptr<Algorithm> changed = network.MakeAlgorithm(2);
  changed->Handle(Started{kIterations, Pace{1000, 77}}, ignored);
  EXPECT_EQ(changed->pace(), (Pace{1000, 77}));
}

TEST_P(PaceOf, GrowsByTheIterationsThatAreJumpedOver) {
  FourNodes network(**BuiltInCatalogue().Find(GetParam()));
  network.RunToStep(5);
  Algorithm& algorithm = network.algorithm(1);
  const Pace before = algorithm.pace();
  const Pace foreseen = algorithm.PaceAt(11);
  algorithm.JumpTo(11);
  EXPECT_EQ(algorithm.step(), 11);
  EXPECT_EQ(algorithm.pace(), foreseen);
  EXPECT_GT(algorithm.gradients(), before.steps);
  // However far a peer says that it is.
  const Pace far = algorithm.PaceAt(int64_t{1} << 53);
  EXPECT_GE(far.steps, 0);
  EXPECT_GE(far.rounds, 0);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    names.push_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, PaceOf, testing::ValuesIn(Names()),
                         [](const auto& tested) {
                           std::string name;
                           for (const char c : tested.param) {
                             name += c == '-' ? '_' : c == '+' ? 'p' : c;
                           }
                           return name;
                         });

// [DFedAvgM] with K = 59: ten rounds are 590 steps, and not 590 rounds.
TEST(Paces, FiftyNineLocalStepsAreOneRound) {
  Machine m("dfedavgm", {{"K", int64_t{59}}}, {});
  for (int round = 0; round < 10; ++round) {
    m.Handle(StepBegins{});
    for (int k = 0; k < 59; ++k) m.Handle(GradientReady{});
  }
  EXPECT_EQ(m->gradients(), 590);
  EXPECT_EQ(m->rounds(), 10);
  EXPECT_EQ(m->step(), 10);
}

// What K was counts, and not what it is.
TEST(Paces, AChangeOfTheKnobChangesNothingOfThePast) {
  Machine m("dfedavgm", {{"K", int64_t{2}}}, {});
  m.Handle(StepBegins{});
  m.Handle(GradientReady{});
  m.Handle(GradientReady{});
  m.Handle(PlanChanged{m.Plan({{"K", int64_t{5}}}, {})});
  EXPECT_EQ(m->pace(), (Pace{2, 1}));
  EXPECT_EQ(m->PaceAt(3), (Pace{12, 3}));
}

}  // namespace
}  // namespace dfl::core
