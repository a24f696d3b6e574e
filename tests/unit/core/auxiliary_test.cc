// The vectors that papers follow beside x: what the catalogue names is there,
// and nothing else. tests/golden holds their values to those of an independent
// program.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gtest/gtest.h"
#include "tests/unit/core/four_nodes.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

std::set<std::string> AllSymbols() {
  std::set<std::string> symbols = {"x", ""};
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    symbols.insert(info.auxiliary.begin(), info.auxiliary.end());
  }
  return symbols;
}

class AuxiliaryOf : public testing::TestWithParam<AlgorithmInfo> {};

TEST_P(AuxiliaryOf, IsThereWhereTheCatalogueNamesIt) {
  const AlgorithmInfo& info = GetParam();
  const std::set<std::string> named(info.auxiliary.begin(),
                                    info.auxiliary.end());
  EXPECT_EQ(named.size(), info.auxiliary.size()) << "a symbol twice";
  EXPECT_TRUE(info.gradient_estimate.empty() ||
              named.count(info.gradient_estimate) > 0);
  FourNodes network(info);
  network.RunToStep(7);
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    const Algorithm& algorithm = network.algorithm(i);
    const size_t n = network.parameters(i).size();
    for (const std::string& symbol : AllSymbols()) {
      SCOPED_TRACE(symbol);
      const FlatVector vector = algorithm.Auxiliary(symbol);
      ASSERT_EQ(vector.size(), named.count(symbol) > 0 ? n : 0);
      EXPECT_TRUE(std::all_of(vector.begin(), vector.end(),
                              [](float v) { return std::isfinite(v); }));
      EXPECT_TRUE(vector.empty() ||
                  std::any_of(vector.begin(), vector.end(),
                              [](float v) { return v != 0; }));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, AuxiliaryOf,
                         testing::ValuesIn(BuiltInCatalogue().entries().begin(),
                                           BuiltInCatalogue().entries().end()),
                         [](const testing::TestParamInfo<AlgorithmInfo>& info) {
                           return absl::StrReplaceAll(
                               info.param.name, {{"-", "_"}, {"+", "_plus"}});
                         });

// nu is what the step that begins moves x by.
TEST(AuxiliaryTest, DepositumMovesByTheNuThatItTells) {
  for (const char* option : {"polyak", "nesterov"}) {
    SCOPED_TRACE(option);
    Machine machine("depositum",
                    {{"option", std::string(option)},
                     {"alpha", 0.5},
                     {"beta", 0.25},
                     {"gamma", 0.75}},
                    {});
    EXPECT_EQ(machine->Auxiliary("y"), (FlatVector{0, 0}));
    machine.gradient = {100, 100};  // is nobody's before the first is asked for
    EXPECT_EQ(machine->Auxiliary("nu"), (FlatVector{0, 0}));
    for (int step = 0; step < 4; ++step) {
      const std::vector<float> x = machine.parameters;
      const FlatVector nu = machine->Auxiliary("nu");
      machine.Handle(StepBegins{});
      EXPECT_EQ(machine.parameters[0], x[0] - 0.5F * nu[0]) << step;
      machine.gradient = {static_cast<float>(4 * step + 4), 8};
      EXPECT_EQ(machine.Handle(GradientReady{}), "done");
      EXPECT_EQ(machine->Auxiliary("y"), (FlatVector{step + 1.0F, 2}));
    }
    EXPECT_NE(machine->Auxiliary("nu"), machine->Auxiliary("y"));
  }
}

}  // namespace
}  // namespace dfl::core
