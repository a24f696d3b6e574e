#include "tests/golden/mass_states.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/prox.h"
#include "gtest/gtest.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// Replicas, the node's own and its neighbours' copies of it.
void CheckReplicas(MassRun& run, const State& want,
                   const std::vector<std::string>& parts) {
  for (size_t i = 0; i < run.size(); ++i) {
    const NodeId self = NodeName(static_cast<int64_t>(i));
    const FlatVector& replica = run.replicas(i)->replica();
    const size_t n = run.parameters(i).size();
    for (size_t q = 0; q < parts.size(); ++q) {
      ExpectRow(want, parts[q], i,
                absl::MakeConstSpan(replica).subspan(q * n, n));
    }
    for (size_t j = 0; j < run.size(); ++j) {
      const FlatVector* copy = run.replicas(j)->replica_of(self);
      if (copy == nullptr) continue;
      EXPECT_EQ(*copy, replica) << "node " << j << "'s of node " << i;
    }
  }
}

// What node i added to its replica in this round, from what it sent. A lone
// node sends nothing.
FlatVector Increments(MassRun& run, size_t i) {
  const auto& given = run.given[i];
  FlatVector sent = given ? given->mass : run.replicas(i)->replica();
  if (given && given->increments) return sent;
  const FlatVector& before = run.before[i].replica;
  for (size_t l = 0; l < sent.size(); ++l) {
    // 0: as it was.
    sent[l] = sent[l] == 0 ? 0 : sent[l] - before[l];
  }
  return sent;
}

// d of anq-nids in this round.
double CodeStep(const MassRun& run, size_t i) {
  const auto bits = run.golden().at("params").at("bits").get<int>();
  return 2 * run.before[i].range / (std::exp2(bits) - 1);
}

// One step of d does not show in h: which of two codes is the nearest may be up
// to rounding.
bool StepsAreFine(const MassRun& run, size_t i) {
  return CodeStep(run, i) < kTolerance;
}

// The integers that node i sent in anq-nids.
void CheckCodes(MassRun& run, const State& want, size_t i) {
  if (!want.contains("code")) return;
  const double d = CodeStep(run, i);
  const double slack = StepsAreFine(run, i) ? 2 : 0;
  const FlatVector added = Increments(run, i);
  const json& codes = want.at("code").at(i);
  ASSERT_EQ(codes.size(), added.size());
  for (size_t l = 0; l < added.size(); ++l) {
    EXPECT_NEAR(std::rint(added[l] / d - 0.5), codes.at(l).get<double>(), slack)
        << "after step " << want.k() << ", code[" << l << "] of node " << i;
  }
}

// z of k-gt: of it W_ij goes to each neighbour j. A lone node keeps it, and its
// model is what it was trained to.
FlatVector LocalMean(MassRun& run, size_t i) {
  const auto& given = run.given[i];
  const json& params = run.golden().at("params");
  FlatVector z;
  if (given) {
    z = given->mass;
    const double weight = run.golden().at("W").at(i).at(NodeIndex(given->to));
    for (float& value : z) value = static_cast<float>(value / weight);
    return z;
  }
  const double length =
      params.at("K").get<double>() * params.at("eta_c").get<double>();
  for (size_t l = 0; l < run.before[i].x.size(); ++l) {
    z.push_back(static_cast<float>((run.before[i].x[l] - run.parameters(i)[l]) /
                                   length));
  }
  return z;
}

// The states that one algorithm has and others do not.
void CheckQuantised(MassRun& run, const State& want, size_t i) {
  CheckCodes(run, want, i);
  // u = -alpha D is conserved.
  const absl::Span<const float> conserved = run.rounds(i).conserved();
  const double alpha = run.golden().at("params").at("alpha");
  const double slack = StepsAreFine(run, i) ? CodeStep(run, i) / alpha : 0;
  for (size_t l = 0; want.contains("D") && l < conserved.size(); ++l) {
    const double wanted = want.at("D").at(i).at(l);
    EXPECT_NEAR(-conserved[l] / alpha, wanted,
                slack + kTolerance * std::max(1.0, std::fabs(wanted)))
        << "after step " << want.k() << ", D[" << l << "] of node " << i;
  }
}

void CheckIncrements(MassRun& run, const State& want, size_t i) {
  ExpectRow(want, "q", i, Increments(run, i));
}

void CheckLocalMean(MassRun& run, const State& want, size_t i) {
  ExpectRow(want, "z", i, LocalMean(run, i));
}

void CheckOmega(MassRun& run, const State& want, size_t i) {
  ExpectRow(want, "x", i, run.rounds(i).conserved());
  ExpectValue(want, "omega", i, run.algorithm(i).Gauges().at("omega"));
}

void CheckMomentum(MassRun& run, const State& want, size_t i) {
  ExpectRow(want, "g", i, run.node(i).gradient);
  FlatVector mu(run.parameters(i).size(), 0.0F);
  if (run.golden().at("params").at("option") == "nesterov") {
    mu = std::get<FlatVector>(
        run.algorithm(i).ExportState().fields.at("momentum"));
  }
  ExpectRow(want, "mu", i, mu);
}

// The gradient times v, which is 1 or 0 as there is no scale.
void CheckSporadicGradient(MassRun& run, const State& want, size_t i) {
  std::vector<float> g = run.node(i).gradient;
  const double v =
      std::get<double>(run.algorithm(i).ExportState().fields.at("v"));
  for (float& value : g) value *= static_cast<float>(v);
  ExpectRow(want, "g", i, g);
}

// (1/m) sum f_i + h at the mean model.
void CheckPhi(MassRun& run, const State& want) {
  if (!want.contains("phi_mean")) return;
  const auto m = static_cast<double>(run.size());
  std::vector<float> mean(run.parameters(0).size());
  for (size_t l = 0; l < mean.size(); ++l) {
    double sum = 0;
    for (size_t i = 0; i < run.size(); ++i) sum += run.parameters(i)[l];
    mean[l] = static_cast<float>(sum / m);
  }
  double phi = 0;
  for (const auto& problem : run.problems()) phi += problem->Loss(mean) / m;
  const core::NodePlan plan =
      MakePlan(run.golden().algorithm(), 0, MassKnobs(run.golden()));
  phi += core::Penalty(core::ProxOf(plan.knobs), mean);
  EXPECT_TRUE(Close(phi, want.at("phi_mean")))
      << phi << ", not " << want.at("phi_mean") << ", after step " << want.k();
}

// How the states on record are called, and what is checked beside them.
struct Recorded {
  void (*check)(MassRun& run, const State& want, size_t i) = nullptr;
  std::vector<std::string> replica = {};  // its parts, in order
  std::string model = "x";
  // What the ledger conserves; "": y - beta g, where both are on record.
  std::string conserved = "";
};

Recorded RecordedOf(const std::string& algorithm) {
  static const auto* const kRecorded = new std::map<std::string, Recorded>{
      {"anq-nids", {.check = CheckQuantised, .replica = {"h"}}},
      {"beer", {.replica = {"h", "g"}}},
      {"choco-sgd", {.check = CheckIncrements, .replica = {"xhat"}}},
      {"depositum", {.check = CheckMomentum}},
      {"k-gt", {.check = CheckLocalMean, .conserved = "c"}},
      {"nids", {}},
      {"sgp", {.check = CheckOmega, .model = "z"}}};
  const auto it = kRecorded->find(algorithm);
  if (it != kRecorded->end()) return it->second;
  return {.check = CheckSporadicGradient};
}

// Empty: it is not on record.
std::vector<double> Conserved(const Case& golden, const State& want, size_t i,
                              const std::string& field) {
  const auto row = [&](const std::string& of) {
    return want.at(of).at(i).get<std::vector<double>>();
  };
  if (!field.empty() && want.contains(field)) return row(field);
  if (!want.contains("y") || !want.contains("g")) return {};
  std::vector<double> z = row("y");
  const double beta = golden.at("params").value("beta", 1.0);
  for (size_t l = 0; l < z.size(); ++l) {
    z[l] -= beta * want.at("g").at(i).at(l).get<double>();
  }
  return z;
}

}  // namespace

core::KnobValues MassKnobs(const Case& golden) {
  const json& params = golden.at("params");
  core::KnobValues knobs = KnobsOf(golden);
  for (const core::KnobSpec& spec :
       (*core::BuiltInCatalogue().Find(golden.algorithm()))->knobs) {
    if (spec.name == "unbias") knobs["unbias"] = std::string("off");
  }
  if (!params.contains("compressor")) return knobs;
  const json& compressor = params.at("compressor");
  knobs["compressor"] = compressor.at("type").get<std::string>();
  // How many are kept: told, or as many as the first mask holds.
  int64_t kept = compressor.value("k", int64_t{0});
  const json& step = golden.at("schedule").at(0);
  for (const char* mask : {"mask", "mask_h"}) {
    if (step.contains(mask)) {
      kept = static_cast<int64_t>(step.at(mask).at(0).size());
    }
  }
  knobs["rate"] = static_cast<double>(kept) / golden.at("n").get<double>();
  return knobs;
}

void CheckStates(MassRun& run, const State& want) {
  const auto* info = *core::BuiltInCatalogue().Find(run.golden().algorithm());
  const Recorded recorded = RecordedOf(info->name);
  if (run.replicas(0) != nullptr) CheckReplicas(run, want, recorded.replica);
  for (size_t i = 0; i < run.size(); ++i) {
    ExpectRow(want, recorded.model, i, run.parameters(i));
    if (recorded.check != nullptr) recorded.check(run, want, i);
    for (const std::string& symbol : info->auxiliary) {
      if (symbol == "nu") continue;  // before the round
      ExpectRow(want, symbol, i, run.algorithm(i).Auxiliary(symbol));
    }
    const std::vector<double> conserved =
        Conserved(run.golden(), want, i, recorded.conserved);
    if (!conserved.empty()) {
      EXPECT_EQ(Difference("conserved", run.rounds(i).conserved(), conserved),
                "")
          << "after step " << want.k() << ", node " << i;
    }
    EXPECT_NEAR(run.algorithm(i).Gauges().at("mass_imbalance"), 0, 1e-9);
  }
  CheckPhi(run, want);
}

}  // namespace dfl::golden
