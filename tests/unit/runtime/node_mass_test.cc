// Gradient tracking and push-sum on whole nodes: what is given away arrives
// exactly once through chunks, lost links and late acknowledgements, and after
// a crash a new tracker epoch begins.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "daemon/simports/mass_drift.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

const core::MassRounds& RoundsOf(SimCluster& c, int64_t i) {
  return dynamic_cast<const core::MassRounds&>(*c.node(i).algorithm());
}

// Pauses everybody and lets what is out arrive.
void Settle(SimCluster& c) {
  for (int64_t i = 0; i < c.size(); ++i) {
    if (c.node(i).phase() == ports::Phase::kTraining) {
      ASSERT_TRUE(c.node(i).Pause().ok());
    }
  }
  ASSERT_TRUE(c.RunUntil(
      [&] {
        for (int64_t i = 0; i < c.size(); ++i) {
          const ports::Phase phase = c.node(i).phase();
          if (phase == ports::Phase::kTraining ||
              c.node(i).parcels().out() > 0) {
            return false;
          }
        }
        return true;
      },
      absl::Seconds(120)));
}

// The largest entry of sum z + what is in flight, on settled nodes.
double MassDefect(SimCluster& c) {
  std::vector<double> total;
  for (int64_t i = 0; i < c.size(); ++i) {
    const absl::Span<const float> z = RoundsOf(c, i).conserved();
    std::vector<float> unsettled(z.size(), 0.0F);
    RoundsOf(c, i).AddUnsettled(absl::MakeSpan(unsettled));
    total.resize(z.size(), 0.0);
    for (size_t l = 0; l < z.size(); ++l) total[l] += z[l] + unsettled[l];
  }
  double largest = 0;
  for (const double value : total) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

struct MassCase {
  std::string name;
  std::string algorithm;
  core::KnobValues knobs;
  core::ValueType mass = core::ValueType::kFp32;
};

class MassOnNodes : public testing::TestWithParam<MassCase> {
 protected:
  core::RunPlan Plan(const SimCluster& c) const {
    core::RunPlan plan = c.MakePlan(GetParam().algorithm, GetParam().knobs);
    plan.batch_size = kRows;
    plan.topology.kind = "ring";
    plan.deadline.exchange = absl::Milliseconds(300);
    plan.codec.mass = GetParam().mass;
    return plan;
  }
  // Every node, within `tolerance` of the least mean loss.
  void ExpectOptimal(SimCluster& c, double tolerance) const {
    const double least = problems_.Least();
    for (int64_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(problems_.Loss(c.parameters(i)), least, tolerance)
          << "node " << i;
    }
  }

  const Problems problems_;
};

TEST_P(MassOnNodes, EndsAtTheOptimumAndConserves) {
  RunTwice(LeastSquaresCluster(problems_, 41), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c);
    // Depositum's rounds are longer: T0 iterations.
    (plan.algorithm.name == "depositum" ? plan.stop.steps : plan.stop.rounds) =
        400;
    c.Run(plan);
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    Settle(c);
    EXPECT_LE(MassDefect(c), 1e-4);
    ExpectOptimal(c, 1e-3);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 1U);
      EXPECT_LT(c.node(i).Status().gauges.at("mass_imbalance"), 1e-3);
      EXPECT_TRUE(c.node(i).Status().rejected.empty());
      // Mass counts as models do.
      const NodeStatus status = c.node(i).Status();
      EXPECT_GT(status.models_sent, 400);
      EXPECT_GT(status.models_received, 400);
      const int64_t length = c.node(i).algorithm()->MassLength(kParameters);
      EXPECT_EQ(status.dense_bytes_sent, 4 * length * status.models_sent);
    }
  });
}

// Links are reset every moment, in the midst of parcels and before their
// acknowledgements.
TEST_P(MassOnNodes, ConservesThroughLostLinks) {
  ClusterOptions options = LeastSquaresCluster(problems_, 42);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.01;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(60));
    Settle(c);
    EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 10);
    EXPECT_LE(MassDefect(c), 1e-4);
    ExpectOptimal(c, 0.01);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 1U) << "nobody crashed";
      EXPECT_LT(c.node(i).Status().gauges.at("mass_imbalance"), 1e-3);
    }
  });
}

// At any moment, whatever is out, held or unacknowledged: what all nodes see
// together needs no settling. What is taken away without a parcel is seen.
TEST_P(MassOnNodes, TheDriftIsNothingAtAnyMoment) {
  ClusterOptions options = LeastSquaresCluster(problems_, 44);
  options.network.path.jitter = absl::Milliseconds(20);
  options.network.path.reset_probability = 0.01;
  RunTwice(options, [&](SimCluster& c) {
    c.Run(Plan(c));
    std::map<NodeId, const core::Algorithm*> nodes;
    for (int moment = 0; moment < 300; ++moment) {
      c.RunFor(absl::Milliseconds(7));
      nodes.clear();
      bool all = true;
      for (int64_t i = 0; i < c.size(); ++i) {
        all = all && c.node(i).algorithm() != nullptr;
        if (all) nodes[c.id(i)] = &RoundsOf(c, i);
      }
      if (!all) continue;
      const std::optional<double> drift = simports::MassDrift(nodes);
      ASSERT_TRUE(drift.has_value());
      ASSERT_LE(*drift, 1e-4) << "moment " << moment;
    }
    nodes.erase(nodes.begin());
    EXPECT_GT(simports::MassDrift(nodes).value_or(1), 1e-3);
  });
}

// A node dies with what it held and comes back empty: everybody begins a new
// epoch, and the sum is right again.
TEST_P(MassOnNodes, ACrashBeginsANewEpoch) {
  RunTwice(LeastSquaresCluster(problems_, 43), [&](SimCluster& c) {
    c.Run(Plan(c));
    c.RunFor(absl::Seconds(5));
    c.Crash(2);
    c.RunFor(absl::Seconds(3));
    c.Restart(2);
    ASSERT_TRUE(c.node(2).Start().ok());
    c.RunFor(absl::Seconds(2));
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 2U) << "node " << i;
    }
    c.RunFor(absl::Seconds(30));
    Settle(c);
    EXPECT_LE(MassDefect(c), 1e-4);
    ExpectOptimal(c, 0.01);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, MassOnNodes,
    testing::Values(
        MassCase{"depositum", "depositum", {{"T0", int64_t{2}}}},
        MassCase{"push_pull", "push-pull", {{"eta", 0.05}}},
        MassCase{"g_push_pull", "g-push-pull", {{"eta", 0.05}, {"p_hat", 0.6}}},
        MassCase{"k_gt", "k-gt", {{"eta_c", 0.02}, {"K", int64_t{3}}}},
        MassCase{"depositum_fp16",
                 "depositum",
                 {{"T0", int64_t{2}}},
                 core::ValueType::kFp16},
        MassCase{"push_pull_int8",
                 "push-pull",
                 {{"eta", 0.05}},
                 core::ValueType::kInt8},
        MassCase{"k_gt_int8",
                 "k-gt",
                 {{"eta_c", 0.02}, {"K", int64_t{3}}},
                 core::ValueType::kInt8},
        MassCase{"nids", "nids", {{"alpha", 0.1}}},
        MassCase{
            "beer", "beer", {{"eta", 0.03}, {"gamma", 0.3}, {"rate", 0.3}}},
        MassCase{"beer_sign",
                 "beer",
                 {{"eta", 0.03},
                  {"gamma", 0.3},
                  {"compressor", std::string("sign")}}}),
    [](const auto& info) { return info.param.name; });

// D-PSGD and CHOCO-SGD with a constant step stall where the nodes' data differ;
// tracking, NIDS and BEER do not.
TEST(MassOnNodesTest, TrackingIsExactWhereDpsgdStalls) {
  const Problems problems;
  const double least = problems.Least();
  const auto gap = [&](const std::string& algorithm, core::KnobValues knobs) {
    double worst = 0;
    RunTwice(LeastSquaresCluster(problems, 44), [&](SimCluster& c) {
      core::RunPlan plan = FullBatches(c.MakePlan(algorithm, knobs));
      plan.topology.kind = "ring";
      plan.stop.steps = 1000;
      c.Run(plan);
      ASSERT_TRUE(
          c.RunUntil([&] { return c.AllFinished(); }, absl::Seconds(600)));
      worst = 0;
      for (int64_t i = 0; i < 4; ++i) {
        worst = std::max(worst, problems.Loss(c.parameters(i)) - least);
      }
    });
    return worst;
  };
  const double dpsgd = gap("d-psgd", {{"eta", 0.1}});
  const double tracking = gap("push-pull", {{"eta", 0.1}});
  EXPECT_GT(dpsgd, 5e-4);
  EXPECT_LT(tracking, dpsgd / 20);
  EXPECT_LT(gap("nids", {{"alpha", 0.1}}), dpsgd / 20);
  const core::KnobValues compressed = {
      {"eta", 0.05}, {"gamma", 0.2}, {"rate", 0.25}};
  const double choco = gap("choco-sgd", compressed);
  EXPECT_GT(choco, 5e-4);
  EXPECT_LT(gap("beer", compressed), choco / 20);
  EXPECT_LT(gap("anq-nids", {{"alpha", 0.1}, {"bits", int64_t{4}}}),
            dpsgd / 20);
}

// A tenth of the coordinates is less than a sixth of the bytes, which have the
// names of coordinates and the control frames of a model of 4 kB in them. BEER
// sends two vectors.
TEST(MassOnNodesTest, CompressedDifferencesCostLittle) {
  const auto bytes = [](const std::string& algorithm, core::KnobValues knobs) {
    int64_t sent = 0;
    RunTwice(ClusterOptions(), [&](SimCluster& c) {
      core::RunPlan plan = c.MakePlan(algorithm, knobs);
      plan.stop.rounds = 50;
      c.Run(plan);
      ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
      sent = c.node(0).Status().bytes_sent;
    });
    return static_cast<double>(sent);
  };
  const double whole = bytes("d-psgd", {{"eta", 0.01}});
  for (const char* compressor : {"topk", "mask"}) {
    const core::KnobValues knobs = {
        {"eta", 0.01}, {"rate", 0.1}, {"compressor", std::string(compressor)}};
    EXPECT_LT(bytes("choco-sgd", knobs), whole / 6) << compressor;
    EXPECT_LT(bytes("beer", knobs), 2 * whole / 6) << compressor;
  }
  // A bit is a thirty-second, a step for each 256 comes on top, and here frames
  // of 100 bytes a parcel do: 1,000 parameters are 125 bytes.
  const core::KnobValues sign = {{"eta", 0.01},
                                 {"compressor", std::string("sign")}};
  EXPECT_LT(bytes("choco-sgd", sign), whole / 10);
  EXPECT_LT(bytes("beer", sign), 2 * whole / 12);
  const auto anq = [&](int64_t bits) {
    return bytes("anq-nids", {{"alpha", 0.01}, {"bits", bits}});
  };
  const double four = anq(4);
  const double eight = anq(8);
  const double twelve = anq(12);
  // Four bits more are up to 500 bytes a parcel more, an eighth of the whole.
  // They are entropy coded, so where the differences are small against the
  // range they take much less.
  EXPECT_GT(eight, four);
  EXPECT_LT(eight - four, whole / 8 + whole / 80);
  EXPECT_GT(twelve, eight);
  EXPECT_LT(twelve - eight, whole / 8 + whole / 80);
  EXPECT_LT(four, whole / 6);
}

// A model of int8 and mass of int8 are a quarter of what they are in fp32.
TEST(MassOnNodesTest, LossyMassCostsAByteAValue) {
  const auto bytes = [](core::ValueType models, core::ValueType mass) {
    int64_t sent = 0;
    RunTwice(ClusterOptions(), [&](SimCluster& c) {
      core::RunPlan plan = c.MakePlan("push-pull", {{"eta", 0.01}});
      plan.codec.format.values = models;
      plan.codec.mass = mass;
      plan.stop.rounds = 50;
      c.Run(plan);
      ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
      sent = c.node(0).Status().bytes_sent;
    });
    return static_cast<double>(sent);
  };
  const double exact = bytes(core::ValueType::kFp32, core::ValueType::kFp32);
  const double half = bytes(core::ValueType::kInt8, core::ValueType::kFp32);
  const double lossy = bytes(core::ValueType::kInt8, core::ValueType::kInt8);
  EXPECT_NEAR(exact - half, half - lossy, 0.05 * exact);
  EXPECT_LT(lossy, 0.4 * exact);  // frames are about a tenth of a parcel here
}

// The format changes in the midst of a run, and back: what was kept is given.
TEST(MassOnNodesTest, TheFormatOfMassMayChange) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 50), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("push-pull", {{"eta", 0.05}}));
    plan.deadline.exchange = absl::Milliseconds(300);
    plan.version = 1;
    c.Run(plan);
    for (const core::ValueType mass :
         {core::ValueType::kInt8, core::ValueType::kFp32,
          core::ValueType::kBf16}) {
      c.RunFor(absl::Seconds(1));
      ++plan.version;
      plan.codec.mass = mass;
      c.SetPlanEverywhere(plan);
    }
    c.RunFor(absl::Seconds(20));
    Settle(c);
    EXPECT_LE(MassDefect(c), 1e-4);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 1U);
      EXPECT_NEAR(problems.Loss(c.parameters(i)), problems.Least(), 1e-3);
    }
  });
}

// Every copy of a replica is its owner's to the last bit, through lost links.
TEST(MassOnNodesTest, ReplicasOfIncrementsAreTheSameEverywhere) {
  const Problems problems;
  for (const auto& [algorithm, knobs] :
       std::vector<std::pair<std::string, core::KnobValues>>{
           {"choco-sgd", {{"eta", 0.03}, {"compressor", std::string("sign")}}},
           {"beer", {{"eta", 0.03}, {"compressor", std::string("sign")}}},
           {"anq-nids", {{"alpha", 0.05}, {"bits", int64_t{3}}}}}) {
    SCOPED_TRACE(algorithm);
    ClusterOptions options = LeastSquaresCluster(problems, 49);
    options.network.path.jitter = absl::Milliseconds(20);
    options.network.path.reset_probability = 0.01;
    RunTwice(options, [&](SimCluster& c) {
      core::RunPlan plan = FullBatches(c.MakePlan(algorithm, knobs));
      plan.deadline.exchange = absl::Milliseconds(300);
      c.Run(plan);
      c.RunFor(absl::Seconds(20));
      Settle(c);
      c.RunFor(absl::Seconds(1));
      EXPECT_GT(c.log(0).Count<ports::LinkDown>(), 3);
      for (int64_t i = 0; i < c.size(); ++i) {
        const auto& own =
            dynamic_cast<const core::ReplicaRounds&>(RoundsOf(c, i));
        for (int64_t j = 0; j < c.size(); ++j) {
          if (j == i) continue;
          const auto& taker =
              dynamic_cast<const core::ReplicaRounds&>(RoundsOf(c, j));
          FlatVector copy = *taker.replica_of(c.id(i));
          for (const core::MassLedger::Taken* held : taker.ledger().held()) {
            if (held->from != c.id(i)) continue;
            core::ApplyParcel(held->mass, held->increments,
                              absl::MakeSpan(copy));
          }
          EXPECT_EQ(copy, own.replica()) << i << " at " << j;
        }
      }
    });
  }
}

// A change of algorithm while it runs: state is built anew, in a new epoch
// where mass was exchanged before.
TEST(MassOnNodesTest, AlgorithmsChangeCleanly) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 45), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("d-psgd", {{"eta", 0.05}}));
    plan.deadline.exchange = absl::Milliseconds(300);
    plan.version = 1;
    c.Run(plan);
    c.RunFor(absl::Seconds(2));
    for (const auto& [algorithm, knobs] :
         std::vector<std::pair<std::string, core::KnobValues>>{
             {"depositum", {{"T0", int64_t{1}}}},
             {"k-gt", {{"eta_c", 0.02}}},
             {"beer", {{"eta", 0.03}, {"rate", 0.5}}},
             {"choco-sgd", {{"eta", 0.03}}},
             {"nids", {{"alpha", 0.05}}},
             {"pame", {{"sigma0", 5.0}}},
             {"push-pull", {{"eta", 0.05}}}}) {
      ++plan.version;
      plan.algorithm = {algorithm, knobs};
      // One after the other, as on a network.
      for (int64_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(c.SetPlan(i, plan).ok());
        c.RunFor(absl::Milliseconds(130));
      }
      const int64_t before = c.LowestStep();
      c.RunFor(absl::Seconds(10));
      EXPECT_GT(c.LowestStep(), before + 20) << algorithm;
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(c.node(i).Status().algorithm, algorithm);
        EXPECT_EQ(c.node(i).parcels().epoch(), c.node(0).parcels().epoch());
      }
    }
    c.RunFor(absl::Seconds(20));
    Settle(c);
    EXPECT_LE(MassDefect(c), 1e-4);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(problems.Loss(c.parameters(i)), problems.Least(), 1e-3);
    }
  });
}

// What a node knew was of the model before: it begins anew, and so does
// everybody.
TEST(MassOnNodesTest, AnImportedModelEndsTheEpoch) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 48), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("sgp", {{"eta", 0.01}}));
    plan.deadline.exchange = absl::Milliseconds(300);
    c.Run(plan);
    c.RunFor(absl::Seconds(3));
    auto model = std::make_shared<Snapshot>();
    model->parameters.assign(kParameters, 5.0F);
    int64_t imported = 0;
    c.node(1).ReplaceModel(model, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++imported;
    });
    // The round in which the epoch ends waits for its deadline: what was given
    // in it is void. A few more follow.
    c.RunFor(plan.deadline.exchange + absl::Milliseconds(50));
    EXPECT_EQ(imported, 1);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(c.node(i).parcels().epoch(), 2U) << "node " << i;
    }
    // The imported model counts: push-sum spreads it.
    EXPECT_GT(c.parameters(0)[0], 0.5F);
    c.RunFor(absl::Seconds(30));
    Settle(c);
    double omega = 0;
    for (int64_t i = 0; i < 4; ++i) {
      std::vector<float> unused(kParameters, 0.0F);
      omega += c.node(i).Status().gauges.at("omega") +
               RoundsOf(c, i).AddUnsettled(absl::MakeSpan(unused));
    }
    EXPECT_NEAR(omega, 4, 4e-4);
  });
}

// Who leaves takes what it held along: the others begin anew without it.
TEST(MassOnNodesTest, AMemberThatLeavesEndsTheEpoch) {
  const Problems problems;
  RunTwice(LeastSquaresCluster(problems, 46), [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("push-pull", {{"eta", 0.05}}));
    plan.version = 1;
    c.Run(plan);
    c.RunFor(absl::Seconds(3));
    c.Crash(3);
    plan.version = 2;
    plan.members.pop_back();
    for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(c.SetPlan(i, plan).ok());
    c.RunFor(absl::Seconds(20));
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_GE(c.node(i).parcels().epoch(), 2U);
      EXPECT_EQ(c.node(i).parcels().epoch(), c.node(0).parcels().epoch());
      EXPECT_NEAR(c.parameters(i)[0], c.parameters(0)[0], 1e-3);
    }
  });
}

// A node comes back empty, and those whom it is linked with have exchanged no
// mass with it. Its partner hears of it from them.
TEST(MassOnNodesTest, ACrashThatIsOnlyHeardOfBeginsANewEpoch) {
  const Problems problems;
  ClusterOptions options = LeastSquaresCluster(problems, 51);
  options.membership = true;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("push-pull", {{"eta", 0.05}}));
    plan.topology.kind = "path";
    plan.deadline.exchange = absl::Milliseconds(300);
    c.Run(plan);
    c.RunFor(absl::Seconds(5));
    const uint64_t before = c.node(1).parcels().epoch();
    const auto all_in = [&](uint64_t epoch) {
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(c.node(i).parcels().epoch(), epoch) << "node " << i;
      }
    };
    all_in(before);
    ASSERT_EQ(c.node(1).parcels().partners().count(c.id(0)), 1U);
    ASSERT_EQ(c.node(2).parcels().partners().count(c.id(0)), 0U);
    c.network().Cut(c.address(0), c.address(1));
    c.Crash(0);
    c.RunFor(absl::Milliseconds(500));
    c.Restart(0);
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(40));
    EXPECT_EQ(c.node(0).phase(), ports::Phase::kTraining);
    all_in(before);
    c.RunFor(absl::Seconds(40));
    all_in(before + 1);
    Settle(c);
    EXPECT_LE(MassDefect(c), 1e-4);
  });
}

// Sum of omega, and the models agree on a digraph.
TEST(MassOnNodesTest, PushSumAgreesOnADigraph) {
  const Problems problems;
  ClusterOptions options = LeastSquaresCluster(problems, 47);
  options.network.path.reset_probability = 0.003;
  RunTwice(options, [&](SimCluster& c) {
    core::RunPlan plan = FullBatches(c.MakePlan("sgp", {{"eta", 0.01}}));
    plan.topology.kind = "explicit";
    plan.topology.directed = true;
    plan.topology.edges = {{c.id(0), c.id(1)},
                           {c.id(1), c.id(2)},
                           {c.id(2), c.id(3)},
                           {c.id(3), c.id(0)},
                           {c.id(0), c.id(2)}};
    plan.deadline.exchange = absl::Milliseconds(300);
    c.Run(plan);
    c.RunFor(absl::Seconds(30));
    Settle(c);
    double omega = 0;
    for (int64_t i = 0; i < 4; ++i) {
      std::vector<float> unused(kParameters, 0.0F);
      omega += c.node(i).Status().gauges.at("omega") +
               RoundsOf(c, i).ledger().AddUnsettled(absl::MakeSpan(unused));
      EXPECT_NEAR(problems.Loss(c.parameters(i)), problems.Least(), 0.15);
    }
    EXPECT_NEAR(omega, 4, 4e-4);
  });
}

}  // namespace
}  // namespace dfl::runtime
