// What the papers claim and a small run can show, each claim on whole nodes in
// the simulator. Figures and the papers' own data are in docs/experiments;
// other claims stand with the algorithms' unit tests (PaME's unbiased mean,
// DRACO's window, KD-PDFL's weights).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/sim/variants.h"
#include "tests/unit/sim/play.h"

namespace dfl::sim {
namespace {

// The last row of every variant of a scenario, by the variant's name.
std::map<std::string, MetricsRow> LastRows(const std::string& text) {
  std::map<std::string, MetricsRow> rows;
  const auto names = VariantNames(text, "claim.yaml");
  EXPECT_TRUE(names.ok()) << names.status();
  if (!names.ok()) return rows;
  for (const std::string& name : *names) {
    SCOPED_TRACE(name);
    const Result result = RunOnce(text, 0, name);
    EXPECT_FALSE(result.failed) << result.why;
    rows[name] = result.rows.back();
  }
  return rows;
}

// [PaME] sec. V-C 1: "with a transmission rate of only 0.1, the final objective
// already approximates that obtained under full transmission".
TEST(PaperClaims, PameWithATenthIsNearFullExchange) {
  auto ends = LastRows(R"(
seed: 1
batch_size: 40
algorithm:
  name: pame
  knobs: {nu: 0.2, p: 1, kappa: [3, 7], sigma0: 4, gamma: 1.002, lookahead: 0}
topology: {kind: random-regular, degree: 10}
codec: {coordinates: random, values: fp32}
stop: {steps: 400}
network:
  nodes: 24
  problem: {kind: linear, n: 60, rows: 40, seed: 2}
variants:
  tenth: {algorithm: {knobs: {p: 0.1}}}
  full: {}
  alone: {algorithm: {knobs: {kappa: 1000}}}
)");
  const double full = ends["full"].loss_mean_model;
  const double alone = ends["alone"].loss_mean_model;
  const double tenth = ends["tenth"].loss_mean_model;
  EXPECT_LT(tenth - full, 0.1 * (alone - full))
      << tenth << ", full " << full << ", alone " << alone;
  EXPECT_LT(ends["tenth"].bytes_sent, 0.4 * ends["full"].bytes_sent);
}

constexpr char kDepositum[] = R"(
seed: 1
batch_size: 30
algorithm: {name: depositum, knobs: {alpha: 0.05, beta: 0.5, gamma: 0.5, T0: 5}}
topology: {kind: ring, weights: metropolis}
codec: {coordinates: dense, values: fp32}
stop: {steps: 60}
network:
  nodes: 10
  metrics_every: 20
  problem: {kind: logistic, n: 20, rows: 30, seed: 2}
variants:
)";

// [DEPOSITUM] sec. V-B 1: lines of the same alpha beta "align closely", and
// larger ones decrease "more rapidly".
TEST(PaperClaims, TheProductOfDepositumsStepsSetsItsPace) {
  auto ends = LastRows(absl::StrCat(kDepositum, R"(
  a05-b05: {}
  a10-b05: {algorithm: {knobs: {alpha: 0.1}}}
  a05-b10: {algorithm: {knobs: {beta: 1}}}
  a20-b05: {algorithm: {knobs: {alpha: 0.2}}}
  a10-b10: {algorithm: {knobs: {alpha: 0.1, beta: 1}}}
)"));
  const double slow = ends["a05-b05"].loss_mean_model;
  const double middle = ends["a10-b05"].loss_mean_model;
  const double fast = ends["a20-b05"].loss_mean_model;
  EXPECT_NEAR(ends["a05-b10"].loss_mean_model, middle, 1e-3);
  EXPECT_NEAR(ends["a10-b10"].loss_mean_model, fast, 1e-3);
  EXPECT_LT(middle, slow - 0.03);
  EXPECT_LT(fast, middle - 0.03);
  // "the consensus errors of x show the opposite trend".
  EXPECT_LT(ends["a05-b05"].consensus_error, ends["a10-b05"].consensus_error);
  EXPECT_LT(ends["a10-b05"].consensus_error, ends["a20-b05"].consensus_error);
}

// [DEPOSITUM] sec. V-B 2: consensus errors grow with the communication period.
TEST(PaperClaims, DepositumsConsensusErrorGrowsWithItsPeriod) {
  auto ends = LastRows(absl::StrCat(kDepositum, R"(
  t01: {algorithm: {knobs: {T0: 1}}}
  t05: {}
  t10: {algorithm: {knobs: {T0: 10}}}
  t20: {algorithm: {knobs: {T0: 20}}}
)"));
  EXPECT_LT(100 * ends["t01"].consensus_error, ends["t05"].consensus_error);
  EXPECT_LT(2 * ends["t05"].consensus_error, ends["t10"].consensus_error);
  EXPECT_LT(2 * ends["t10"].consensus_error, ends["t20"].consensus_error);
  EXPECT_LT(ends["t01"].bytes_sent, 6 * ends["t05"].bytes_sent);
  EXPECT_GT(ends["t01"].bytes_sent, 4 * ends["t05"].bytes_sent);
}

// [DEPOSITUM] sec. I: with a fixed step DSGD "typically converges only to a
// neighborhood of the optimal solution", without noise too, and the more so the
// more its nodes' data differ; gradient tracking needs no assumption on that.
// Whole gradients, labels of Dir(0.1), one step size, local updates or none.
TEST(PaperClaims, DepositumIsExactWhereDpsgdStallsOnHeterogeneousData) {
  auto ends = LastRows(R"(
seed: 1
batch_size: 30
algorithm: {name: d-psgd, knobs: {eta: 0.2}}
topology: {kind: ring, weights: metropolis}
codec: {coordinates: dense, values: fp32}
stop: {steps: 4000}
network:
  nodes: 10
  metrics_every: 1000
  metrics: [proximal_gradient]
  problem: {kind: softmax, n: 4, rows: 30, classes: 3, skew: 0.1, seed: 2}
variants:
  start: {stop: {steps: 1}}
  d-psgd-half: {stop: {steps: 2000}}
  d-psgd: {}
  d-psgd-alike: {network: {problem: {skew: 0}}}
  depositum:
    algorithm: {name: depositum, knobs: {alpha: 0.2, beta: 1, gamma: 0.5, T0: 1}}
  depositum-local:
    algorithm: {name: depositum, knobs: {alpha: 0.2, beta: 1, gamma: 0.5, T0: 5}}
)");
  // |grad f(mean w)|^2
  const auto gradient = [&ends](const char* name) {
    return ends[name].extra["proximal_gradient"];
  };
  const MetricsRow stalled = ends["d-psgd"];
  EXPECT_LT(gradient("d-psgd"), 0.01 * gradient("start"));  // it learns
  EXPECT_NEAR(gradient("d-psgd") / gradient("d-psgd-half"), 1, 0.01);
  EXPECT_NEAR(stalled.consensus_error / ends["d-psgd-half"].consensus_error, 1,
              0.01);
  EXPECT_LT(50 * gradient("d-psgd-alike"), gradient("d-psgd"));
  for (const char* name : {"depositum", "depositum-local"}) {
    SCOPED_TRACE(name);
    EXPECT_LT(1e6 * gradient(name), gradient("d-psgd"));
    EXPECT_LT(1e7 * ends[name].consensus_error, stalled.consensus_error);
    EXPECT_LT(ends[name].loss_mean_model, stalled.loss_mean_model - 1e-3);
  }
  EXPECT_NEAR(ends["depositum"].loss_mean_model,
              ends["depositum-local"].loss_mean_model, 1e-6);
}

constexpr char kDecefl[] = R"(
seed: 1
batch_size: 30
algorithm: {name: decefl, knobs: {form: gradient, delta: 100, Gamma: 100}}
topology: {kind: ring, weights: laplacian}
codec: {coordinates: dense, values: fp32}
stop: {steps: 2500}
network:
  nodes: 8
  metrics_every: 500
  problem: {kind: logistic, n: 10, rows: 30, seed: 2}
variants:
)";

// [DeceFL] Theorem 1: every node's gap to the optimum goes to 0; also where no
// round's graph is connected, only the union of two ("disconnected rounds").
TEST(PaperClaims, DeceflHasNoGapWhereEachRoundIsDisconnectedToo) {
  auto ends = LastRows(absl::StrCat(kDecefl, R"(
  ring: {}
  pairs:
    topology:
      kind: time-varying
      edge_sets: [[[n0, n1], [n2, n3], [n4, n5], [n6, n7]],
                  [[n1, n2], [n3, n4], [n5, n6], [n7, n0]]]
  constant-step: {algorithm: {knobs: {delta: 0, eta: 0.5}}}
  optimum:
    algorithm: {name: nids, knobs: {alpha: 0.5}}
    topology: {weights: metropolis}
)"));
  const double optimum = ends["optimum"].loss_mean_model;
  EXPECT_LT(ends["optimum"].consensus_error, 1e-10);
  for (const char* name : {"ring", "pairs"}) {
    EXPECT_NEAR(ends[name].loss_mean_model, optimum, 2e-5) << name;
    EXPECT_LT(ends[name].consensus_error, 1e-3) << name;
  }
  // What the decaying step is for.
  EXPECT_GT(ends["constant-step"].consensus_error, 0.03);
}

// [DeceFL] fig. 3b, supplement 5.2.4: two nodes join six, two others leave;
// those that remain end at their optimum.
TEST(PaperClaims, DeceflFollowsNodesThatJoinAndLeave) {
  constexpr char kMoves[] = R"(
    network:
      events:
        - {at: 3s, join: n6}
        - {at: 3s, join: n7}
        - {at: 6s, leave: n0}
        - {at: 6s, leave: n3}
)";
  auto ends = LastRows(absl::StrCat(kDecefl, R"(
  everybody: {topology: {kind: complete}}
  six-eight-six:
    topology: {kind: complete})",
                                    kMoves, R"(
  optimum:
    algorithm: {name: nids, knobs: {alpha: 0.5}}
    topology: {kind: complete, weights: metropolis})",
                                    kMoves));
  EXPECT_EQ(ends["six-eight-six"].nodes, 6);
  EXPECT_EQ(ends["everybody"].nodes, 8);
  const double optimum = ends["optimum"].loss_mean_model;
  EXPECT_NEAR(ends["six-eight-six"].loss_mean_model, optimum, 2e-5);
  EXPECT_LT(ends["six-eight-six"].consensus_error, 1e-3);
  // It is another problem than that of all eight.
  EXPECT_GT(std::abs(ends["everybody"].loss_mean_model - optimum), 0.01);
}

// [Spod-GT] Theorem 1: on a directed graph whose weights are balanced nowhere,
// with gradients and messages of probabilities from Beta(0.5, 0.5).
TEST(PaperClaims, SpodGtConvergesOnAnUnbalancedDigraphWithRareMessages) {
  auto ends = LastRows(R"(
seed: 2
batch_size: 30
algorithm: {name: spod-gt, knobs: {eta: 0.01, p_draw: beta}}
topology:
  kind: explicit
  directed: true
  edges: [[n0, n1], [n1, n2], [n2, n3], [n3, n4], [n4, n0], [n0, n2], [n1, n0]]
codec: {coordinates: dense, values: fp32}
stop: {rounds: 6000}
network:
  nodes: 5
  metrics_every: 1000
  problem: {kind: linear, n: 10, rows: 30, seed: 2}
variants:
  start: {stop: {rounds: 1}}
  rare: {}
  rare-unbiased: {algorithm: {knobs: {unbias: "on"}}}
  always: {algorithm: {name: push-pull, knobs: {eta: 0.01}}}
)");
  const double optimum = ends["always"].loss_mean_model;
  const double start = ends["start"].loss_mean_model - optimum;
  EXPECT_LT(ends["always"].consensus_error, 1e-10);
  // Unequal p weigh the nodes (docs/papers 25); divided by p they do not.
  EXPECT_LT(ends["rare"].loss_mean_model - optimum, 0.01 * start);
  EXPECT_LT(ends["rare-unbiased"].loss_mean_model - optimum, 0.001 * start);
  EXPECT_LT(ends["rare"].bytes_sent, 0.6 * ends["always"].bytes_sent);
}

// [thesis] fig. 2.5: under a tight barrier, late gradients that are applied
// beat late gradients that are discarded; under a wide one there is no
// difference.
TEST(PaperClaims, StaleGradientsBeatDiscardedOnesUnderATightBarrier) {
  auto ends = LastRows(R"(
seed: 1
batch_size: 10
algorithm: {name: async-dsgd, knobs: {eta: 0.05, gamma_max: 0.5, measure_q: "off"}}
topology: {kind: erdos-renyi, edge_probability: 0.5}
codec: {coordinates: dense, values: fp32}
stop: {time: 60s}
network:
  nodes: 10
  compute: {time: 250ms, extra: 1s}
  problem: {kind: linear, n: 20, rows: 30, seed: 2}
variants:
  tight-stale: {}
  tight-discarded:
    algorithm: {name: barrier-dsgd, knobs: {eta: 0.05, gamma_max: 0.5, measure_q: "off"}}
  wide-stale: {algorithm: {knobs: {gamma_max: 5}}}
  wide-discarded:
    algorithm: {name: barrier-dsgd, knobs: {eta: 0.05, gamma_max: 5, measure_q: "off"}}
)");
  EXPECT_LT(3 * ends["tight-stale"].mean_loss,
            ends["tight-discarded"].mean_loss);
  EXPECT_NEAR(ends["wide-stale"].mean_loss / ends["wide-discarded"].mean_loss,
              1, 0.1);
}

// [thesis] sec. 3.4: the fewer updates are accepted in a period, the slower it
// learns; without unification models drift apart (sec. 3.2.2).
TEST(PaperClaims, DracoLearnsByPsiAndAgreesByUnification) {
  auto ends = LastRows(R"(
seed: 1
batch_size: 10
algorithm:
  name: draco
  knobs: {eta: 0.02, B: 1, own_update: "off", send: on-update, gamma_max: 10, window: 0, P: 50}
topology: {kind: complete}
codec: {coordinates: dense, values: fp32}
stop: {time: 600s}
network:
  nodes: 10
  compute: {time: 1ms, extra: 10s}
  links: {delay: 50ms}
  problem: {kind: linear, n: 20, rows: 30, seed: 2}
variants:
  psi-02: {algorithm: {knobs: {psi: 2}}}
  psi-10: {algorithm: {knobs: {psi: 10}}}
  psi-all: {}
  never-unified: {algorithm: {knobs: {P: 0}}}
)");
  EXPECT_LT(ends["psi-10"].mean_loss, 0.8 * ends["psi-02"].mean_loss);
  EXPECT_LT(ends["psi-all"].mean_loss, 0.5 * ends["psi-10"].mean_loss);
  EXPECT_LT(10 * ends["psi-all"].consensus_error,
            ends["never-unified"].consensus_error);
}

}  // namespace
}  // namespace dfl::sim
