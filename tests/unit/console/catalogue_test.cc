#include "daemon/console/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/core/algorithm.h"

namespace dfl::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const core::AlgorithmInfo& Info(const char* name) {
  return **core::FindAlgorithm(name);
}

TEST(Catalogue, HasEveryAlgorithmWithWhatItCostsAndWhereItIsFrom) {
  const Json list = CatalogueJson()["algorithms"];
  ASSERT_EQ(list.size(), core::AlgorithmCatalogue().size());
  for (const core::AlgorithmInfo& info : core::AlgorithmCatalogue()) {
    EXPECT_THAT(CatalogueText(), HasSubstr(info.name + " "));
    const Json json = AlgorithmJson(info, nullptr);
    EXPECT_NE(json["source"], "") << info.name;
    EXPECT_NE(json["cost"], "") << info.name;
    EXPECT_EQ(json["knobs"].size(), info.knobs.size()) << info.name;
    const std::string text = AlgorithmText(info, nullptr, "");
    for (const core::KnobSpec& knob : info.knobs) {
      EXPECT_THAT(text, HasSubstr("\n" + knob.name + " ")) << info.name;
    }
  }
}

TEST(Catalogue, SaysWhatIsKeptForEachNeighbour) {
  EXPECT_THAT(AlgorithmText(Info("k-gt"), nullptr, ""),
              HasSubstr("edges     vectors for each neighbour, at the most: 2 "
                        "given to it and not known to be taken, 2 taken from "
                        "it, 2 on the way to it, 2 of its models that wait\n"));
  EXPECT_THAT(AlgorithmText(Info("local"), nullptr, ""),
              HasSubstr("edges     no vectors for neighbours\n"));
  const Json edge = AlgorithmJson(Info("beer"), nullptr)["edge"];
  EXPECT_EQ(edge["given"], Info("beer").edge.given);
  EXPECT_EQ(edge["taken"], Info("beer").edge.taken);
  EXPECT_EQ(edge["sent"], 0);
  EXPECT_EQ(edge["waiting"], 0);
  EXPECT_EQ(edge["parcel"], 2);
}

TEST(Catalogue, SaysOnWhichGraphsAnAlgorithmRuns) {
  const auto text = [](const char* name) {
    return AlgorithmText(Info(name), nullptr, "");
  };
  EXPECT_THAT(text("d-psgd"), HasSubstr("any whose edges run both ways"));
  EXPECT_THAT(text("fedavg"), HasSubstr("graph     complete"));
  EXPECT_THAT(text("local"), HasSubstr("any; it is not used"));
  EXPECT_EQ(AlgorithmJson(Info("fedavg"), nullptr)["complete_graph"], true);
}

TEST(Catalogue, SaysWhichKnobsNodesShare) {
  const std::string text = AlgorithmText(Info("async-dsgd"), nullptr, "");
  EXPECT_THAT(text, AllOf(HasSubstr("mixes without one. The same on every"),
                          Not(HasSubstr("per node. The same"))));
}

TEST(Catalogue, SaysWhatCanBeMeasuredBesideTheModel) {
  EXPECT_THAT(AlgorithmText(Info("depositum"), nullptr, ""),
              HasSubstr("beside x  y, nu; the mean of nu estimates the "));
  EXPECT_THAT(AlgorithmText(Info("k-gt"), nullptr, ""),
              HasSubstr("beside x  c\n"));
  EXPECT_THAT(AlgorithmText(Info("pame"), nullptr, ""),
              Not(HasSubstr("beside x")));
  const Json json = AlgorithmJson(Info("depositum"), nullptr);
  EXPECT_EQ(json["auxiliary"], (Json{"y", "nu"}));
  EXPECT_EQ(json["gradient_estimate"], "nu");
}

// A plan's own values, and those of single nodes.
TEST(Catalogue, ShowsTheValuesOfAPlan) {
  core::RunPlan plan;
  plan.algorithm.knobs["nu"] = 0.25;
  plan.nodes[NodeId("b")].knobs["nu"] = 1.0;
  const Json knobs =
      KnobsJson(Info("pame"), core::KnobNoun::kParticipation, &plan);
  ASSERT_EQ(knobs[0]["name"], "nu");
  EXPECT_EQ(knobs[0]["value"], 0.25);
  EXPECT_EQ(knobs[0]["nodes"]["b"], 1.0);
  EXPECT_THAT(AlgorithmText(Info("pame"), &plan, "dflctl"),
              AllOf(HasSubstr("dflctl participation set:"), HasSubstr("b=1")));
}

}  // namespace
}  // namespace dfl::console
