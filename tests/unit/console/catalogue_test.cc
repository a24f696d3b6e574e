#include "daemon/console/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"

namespace dfl::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const core::AlgorithmInfo& Info(const char* name) {
  return **core::BuiltInCatalogue().Find(name);
}

TEST(Catalogue, HasEveryAlgorithmWithWhatItCostsAndWhereItIsFrom) {
  const Json list = CatalogueJson()["algorithms"];
  ASSERT_EQ(list.size(), core::BuiltInCatalogue().entries().size());
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
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

TEST(Catalogue, IsThePageInDocs) {
  const std::string path = DFL_DOCS_DIR "/algorithms.md";
  if (std::getenv("DFL_UPDATE_SAMPLE") != nullptr) {
    std::ofstream(path) << CatalogueMarkdown();
  }
  std::ifstream in(path);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(page, CatalogueMarkdown())
      << "run this test with DFL_UPDATE_SAMPLE=1 to write docs/algorithms.md";
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    EXPECT_THAT(page, HasSubstr("\n## " + info.name + "\n"));
    for (const core::KnobSpec& knob : info.knobs) {
      EXPECT_THAT(page, HasSubstr("| `" + knob.name + "` | ")) << info.name;
    }
  }
}

TEST(Catalogue, HelpOfANounNamesItsKnobsWithTheirOwners) {
  const std::string help = KnobsHelp(core::KnobNoun::kParticipation);
  EXPECT_THAT(help, HasSubstr("\nnu "));
  EXPECT_THAT(help, HasSubstr("(0, 1]"));
  EXPECT_THAT(help, HasSubstr(" pame"));
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    for (const core::KnobSpec& knob : info.knobs) {
      EXPECT_THAT(KnobsHelp(knob.noun), HasSubstr("\n" + knob.name + " "));
    }
  }
}

// A program that has the list needs to ask for no entry by itself.
TEST(Catalogue, ListsEntriesWhole) {
  const Json list = CatalogueJson()["algorithms"];
  const auto infos = core::BuiltInCatalogue().entries();
  ASSERT_EQ(list.size(), infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    const core::AlgorithmInfo& info = infos[i];
    SCOPED_TRACE(info.name);
    const Json& entry = list[i];
    EXPECT_EQ(entry, AlgorithmJson(info, nullptr));
    EXPECT_EQ(entry["name"], info.name);
    EXPECT_EQ(entry["summary"], info.summary);
    EXPECT_EQ(entry["source"], info.source);
    EXPECT_EQ(entry["cost"], info.cost);
    EXPECT_EQ(entry["caveats"], info.caveats);
    EXPECT_EQ(entry["knobs"].size(), info.knobs.size());
    for (const Json& knob : entry["knobs"]) {
      EXPECT_EQ(knob["value"], knob["default"]);
      EXPECT_NE(knob["allowed"], "") << knob["name"];
      EXPECT_NE(knob["help"], "") << knob["name"];
    }
  }
  const auto pame = std::find_if(list.begin(), list.end(), [](const Json& e) {
    return e["name"] == "pame";
  });
  ASSERT_NE(pame, list.end());
  const Json& knobs = (*pame)["knobs"];
  const auto nu = std::find_if(knobs.begin(), knobs.end(),
                               [](const Json& k) { return k["name"] == "nu"; });
  ASSERT_NE(nu, knobs.end());
  EXPECT_EQ((*nu)["default"], 0.5);
  EXPECT_THAT((*nu)["allowed"], HasSubstr("(0, 1]"));
}

// In terms of n and, where an algorithm takes part of the coordinates, of s.
TEST(Catalogue, CostsNameBytesOrSayThatNothingIsSent) {
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    SCOPED_TRACE(info.name + ": " + info.cost);
    EXPECT_THAT(info.cost, HasSubstr("gradient"));
    if (info.exchange == core::Exchange::kNone) {
      EXPECT_THAT(info.cost, HasSubstr("; nothing is sent."));
      EXPECT_THAT(info.cost, Not(HasSubstr("bytes")));
      continue;
    }
    EXPECT_THAT(info.cost,
                testing::ContainsRegex(
                    "(to|from) each [a-z` -]*([0-9]+|bits) [kns](/8)?.* "
                    "bytes"));
    const bool dense = info.cost.find("as fp32 and dense") != std::string::npos;
    EXPECT_EQ(dense,
              !info.dense_only && info.exchange == core::Exchange::kPush);
  }
  EXPECT_THAT(Info("d-psgd").cost,
              HasSubstr("to each neighbour 4 n bytes as fp32 and dense, 4 s"));
  EXPECT_THAT(Info("k-gt").cost, HasSubstr("8 n bytes as fp32"));
}

TEST(Catalogue, SaysWhatAStepAndARoundAre) {
  EXPECT_THAT(AlgorithmText(Info("dfedavgm"), nullptr, ""),
              HasSubstr("pace       A round is K steps and one exchange.\n"));
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    EXPECT_EQ(AlgorithmJson(info, nullptr)["pace"], info.pace);
  }
}

TEST(Catalogue, SaysWhichOptimisersItTakesOrWhyNone) {
  EXPECT_THAT(AlgorithmText(Info("dfedavgm"), nullptr, ""),
              HasSubstr("optimizer  sgd, momentum, adam or adamw, in place of "
                        "theta\n"));
  EXPECT_THAT(AlgorithmText(Info("swarm"), nullptr, ""),
              HasSubstr("adamw, with form: local\n"));
  EXPECT_THAT(AlgorithmText(Info("pame"), nullptr, ""),
              HasSubstr("optimizer  none: it converges by its own step size"));
}

TEST(Catalogue, SaysWhatIsKeptForEachNeighbour) {
  EXPECT_THAT(AlgorithmText(Info("k-gt"), nullptr, ""),
              HasSubstr("edges      vectors for each neighbour, at the most: 2 "
                        "given to it and not known to be taken, 2 taken from "
                        "it, 2 on the way to it, 2 of its models that wait\n"));
  EXPECT_THAT(AlgorithmText(Info("local"), nullptr, ""),
              HasSubstr("edges      no vectors for neighbours\n"));
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
  EXPECT_THAT(text("fedavg"), HasSubstr("graph      complete"));
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
              HasSubstr("beside x   y, nu; the mean of nu estimates the "));
  EXPECT_THAT(AlgorithmText(Info("k-gt"), nullptr, ""),
              HasSubstr("beside x   c\n"));
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
