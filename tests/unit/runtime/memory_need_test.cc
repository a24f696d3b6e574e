// What a node needs for a plan: each part by the formula in the header, with
// numbers that are easy to follow: n = 1000 and b = 10.
#include "daemon/runtime/memory_need.h"
#include "daemon/core/algorithms/catalogue.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/algorithm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr int64_t kModel = 4 * 1010;  // bytes, of parameters and buffers

core::RunPlan Plan(const std::string& algorithm, int members = 5) {
  core::RunPlan plan;
  plan.seed = 3;
  for (int i = 0; i < members; ++i) {
    plan.members.push_back({.node = NodeId(absl::StrCat("n", 1000 + i))});
  }
  plan.algorithm.name = algorithm;
  plan.codec.format = {core::Coordinates::kDense, core::ValueType::kFp32};
  return plan;
}

MemoryNeed Need(const core::RunPlan& plan, int64_t data_bytes = 0,
                int64_t base = 0) {
  ports::ModelInfo model;
  model.parameter_count = 1000;
  model.buffer_count = 10;
  ports::DataInfo data;
  data.bytes = data_bytes;
  const auto derived = core::CheckAndDerive(plan, NodeId("n1000"));
  EXPECT_TRUE(derived.ok()) << derived.status();
  if (!derived.ok()) return MemoryNeed();
  const auto need = NeedOf(*derived, model, data, base);
  EXPECT_TRUE(need.ok()) << need.status();
  return need.ok() ? *need : MemoryNeed();
}

std::map<std::string, int64_t> Parts(const MemoryNeed& need) {
  std::map<std::string, int64_t> parts;
  int64_t sum = 0;
  for (const MemoryPart& part : need.parts) {
    parts[part.what] = part.bytes;
    sum += part.bytes;
  }
  EXPECT_EQ(need.total, sum);
  return parts;
}

TEST(MemoryNeed, OfPushedModels) {
  const MemoryNeed need = Need(Plan("d-psgd"), 500, 77);
  EXPECT_EQ(need.message, kModel);
  EXPECT_THAT(
      Parts(need),
      UnorderedElementsAre(
          Pair("program and libraries", 77), Pair("data", 500),
          Pair("model and gradient", kModel + 4000), Pair("snapshot", kModel),
          // Two snapshots, and one of them encoded and in the transport.
          Pair("for 4 neighbours: messages sent", 4 * 4 * kModel),
          // Two that wait and one that comes in, which is in the transport too.
          Pair("for 4 neighbours: messages received", 4 * 4 * kModel),
          // The model once more, and the gradient.
          Pair("checkpoint", kModel + 4000)));
  EXPECT_EQ(need.parts.front().what, "program and libraries");
}

TEST(MemoryNeed, OfANodeByItself) {
  core::RunPlan plan = Plan("local");
  EXPECT_THAT(Parts(Need(plan)),
              ElementsAre(Pair("checkpoint", kModel + 4000),
                          Pair("model and gradient", kModel + 4000)));
  plan.checkpoint.interval = absl::ZeroDuration();
  EXPECT_THAT(Parts(Need(plan)),
              ElementsAre(Pair("model and gradient", kModel + 4000)));
}

TEST(MemoryNeed, OfAnOptimiser) {
  core::RunPlan plan = Plan("local");
  plan.optimizer.name = "sgd";
  EXPECT_EQ(Need(plan).total, Need(Plan("local")).total);
  plan.optimizer.name = "momentum";
  EXPECT_EQ(Parts(Need(plan)).at("moments of momentum"), 4000);
  plan.optimizer.name = "adamw";
  EXPECT_EQ(Parts(Need(plan)).at("moments of adamw"), 2 * 4000);
}

TEST(MemoryNeed, OfMassAndReplicas) {
  const MemoryNeed need = Need(Plan("beer"));
  const core::EdgeCost& edge = (*core::BuiltInCatalogue().Find("beer"))->edge;
  const std::map<std::string, int64_t> parts = Parts(need);
  EXPECT_EQ(parts.at("vectors of beer"), 5 * 4000);
  EXPECT_EQ(parts.at("for 4 neighbours: vectors"),
            4 * 4000 * (edge.given + edge.taken));
  EXPECT_EQ(parts.at("checkpoint"),
            kModel + 6 * 4000 + 4 * 4000 * (edge.given + edge.taken));
  // A parcel of two vectors on its way, and one coming in.
  EXPECT_EQ(parts.at("for 4 neighbours: messages sent"), 4 * 2 * 8000);
  EXPECT_EQ(parts.at("for 4 neighbours: messages received"), 4 * 2 * 8000);
}

TEST(MemoryNeed, WhatLossyMassLeavesIsKeptToo) {
  core::RunPlan plan = Plan("k-gt");
  const auto exact = Parts(Need(plan));
  plan.codec.mass = core::ValueType::kFp16;
  const auto lossy = Parts(Need(plan));
  EXPECT_EQ(lossy.at("for 4 neighbours: vectors"),
            exact.at("for 4 neighbours: vectors") + 4 * 4000);
  EXPECT_EQ(lossy.at("for 4 neighbours: messages sent"),
            exact.at("for 4 neighbours: messages sent") - 4 * 2 * 2000);
}

TEST(MemoryNeed, OfRandomAndTopKCoordinates) {
  core::RunPlan plan = Plan("d-psgd");
  plan.codec.format.coordinates = core::Coordinates::kRandom;
  plan.codec.rate = 0.1;
  MemoryNeed need = Need(plan);
  EXPECT_EQ(need.message, 400 + 40);
  EXPECT_EQ(Parts(need).at("for 4 neighbours: messages received"),
            4 * (3 * (440 + 125) + 440));
  EXPECT_EQ(Parts(need).count("for 4 neighbours: vectors"), 0U);
  // Ranked against what each was sent.
  plan.codec.format.coordinates = core::Coordinates::kTopK;
  EXPECT_EQ(Parts(Need(plan)).at("for 4 neighbours: vectors"), 4 * 4000);
  // PaME has a rate of its own, and asks only some.
  plan = Plan("pame");
  plan.codec.format.coordinates = core::Coordinates::kRandom;
  plan.algorithm.knobs = {{"p", 0.2}, {"nu", 0.5}};
  need = Need(plan);
  EXPECT_EQ(need.message, 800 + 40);
  EXPECT_EQ(Parts(need).at("for 4 neighbours: messages received"),
            2 * (840 + 125 + 840));
  EXPECT_EQ(Parts(need).at("for 4 neighbours: messages sent"),
            4 * (kModel + 2 * 840));
}

TEST(MemoryNeed, CountsThoseThatANodeHearsAndThoseItSendsTo) {
  core::RunPlan plan = Plan("sgp", 4);
  plan.topology.kind = "explicit";
  plan.topology.directed = true;
  const auto n = [](int i) { return NodeId(absl::StrCat("n", 1000 + i)); };
  // n1000 hears one and sends to three.
  plan.topology.edges = {{n(0), n(1)}, {n(0), n(2)}, {n(0), n(3)},
                         {n(1), n(2)}, {n(2), n(3)}, {n(3), n(0)}};
  const core::EdgeCost& edge = (*core::BuiltInCatalogue().Find("sgp"))->edge;
  EXPECT_EQ(Parts(Need(plan)).at("for 3 neighbours: vectors"),
            4000 * (3 * edge.given + 1 * edge.taken));
}

// A ring drawn anew has other neighbours in every round.
TEST(MemoryNeed, OfAVaryingGraphIsThatOfAllWhoAreEverNeighbours) {
  core::RunPlan plan = Plan("d-psgd", 4);
  const auto n = [](int i) { return NodeId(absl::StrCat("n", 1000 + i)); };
  plan.topology.kind = "time-varying";
  plan.topology.edge_sets = {{{n(0), n(1)}, {n(2), n(3)}},
                             {{n(0), n(2)}, {n(1), n(3)}}};
  const auto parts = Parts(Need(plan));
  EXPECT_EQ(parts.at("for 2 neighbours: messages sent"), 2 * 4 * kModel);
  // Two of later graphs as well.
  EXPECT_EQ(parts.at("for 2 neighbours: messages received"), 2 * 6 * kModel);
}

TEST(MemoryNeed, GrowsWithTheNeighboursOfEveryAlgorithmThatHasSome) {
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    const char* kind = info.star_graph ? "star" : "complete";
    core::RunPlan few = Plan(info.name, 3);
    core::RunPlan many = Plan(info.name, 9);
    few.topology.kind = many.topology.kind = kind;
    if (info.name == "local") continue;
    EXPECT_GT(Need(many).total, Need(few).total) << info.name;
  }
}

}  // namespace
}  // namespace dfl::runtime
