// Tracking, push-sum, exact diffusion and plain averaging as their papers write
// them, on stacked matrices of doubles: no ledger, no messages, no events. The
// objects of core, played through their events, must be there after every
// round. Those that compress or choose coordinates are in
// matrix_form_compressed_test.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/core/matrix_network.h"

namespace dfl::core {
namespace {

constexpr int64_t kLength = 6;
constexpr int64_t kRounds = 30;

KnobValues With(KnobValues values, const std::string& name, KnobValue value) {
  values[name] = std::move(value);
  return values;
}

// -------------------------------------------------------------- depositum ----

// With step alpha; parameters lambda 0.05, theta 2, a 3.7.
double Prox(const std::string& h, double alpha, double v) {
  const double lambda = 0.05;
  const double theta = 2;
  const double a = 3.7;
  const double size = std::fabs(v);
  const double sign = v < 0 ? -1 : 1;
  const double soft = sign * std::max(size - alpha * lambda, 0.0);
  if (h == "l1") return soft;
  if (h == "mcp") {
    return size <= theta * lambda ? soft / (1 - alpha / theta) : v;
  }
  if (h == "scad") {
    if (size <= (1 + alpha) * lambda) return soft;
    if (size > a * lambda) return v;
    return ((a - 1) * v - sign * a * lambda * alpha) / (a - 1 - alpha);
  }
  return v;
}

struct DepositumSetting {
  std::string option;
  int64_t period;
  double gamma;
  double beta;
  std::string h;
};

TEST(DepositumTest, FollowsItsMatrixForm) {
  const double alpha = 0.2;
  const LeastSquares f(5, kLength);
  const Weights graph = ChordedRing();
  const Matrix& w = graph.hears;
  for (const DepositumSetting& s :
       std::vector<DepositumSetting>{{"polyak", 1, 0.5, 1, "none"},
                                     {"polyak", 3, 0.8, 0.5, "l1"},
                                     {"nesterov", 1, 0.7, 1, "scad"},
                                     {"nesterov", 4, 0.3, 2, "mcp"},
                                     {"polyak", 2, 0, 1, "none"}}) {
    SCOPED_TRACE(absl::StrCat(s.option, ", T0 ", s.period, ", ", s.h));
    MatrixNetwork net("depositum", f, graph,
                      {{"alpha", alpha},
                       {"beta", s.beta},
                       {"gamma", s.gamma},
                       {"option", s.option},
                       {"T0", s.period},
                       {"prox", s.h},
                       {"lambda", 0.05},
                       {"theta", 2.0},
                       {"a", 3.7}});
    const double gamma = s.gamma;
    Matrix x = Starts(5, kLength);
    Matrix y(5, kLength), g = y, mu = y, nu = y;
    const auto move = [&] {
      if (s.option == "polyak") {
        nu = gamma * nu + (1 - gamma) * y;
      } else {
        mu = gamma * mu + (1 - gamma) * y;
        nu = gamma * mu + (1 - gamma) * y;
      }
    };
    move();
    for (int64_t t = 0; t < kRounds; ++t) {
      net.Round();
      const Matrix mixes = t > 0 && t % s.period == 0 ? w : Identity(5);
      x = mixes *
          (x - alpha * nu).Each([&](double v) { return Prox(s.h, alpha, v); });
      const Matrix last = std::exchange(g, f.Gradients(x));
      y = mixes * (y + s.beta * g - s.beta * last);
      move();
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << t;
      ASSERT_TRUE(Close(net.Auxiliary("y"), y)) << "y, round " << t;
      ASSERT_TRUE(Close(net.Auxiliary("nu"), nu)) << "nu, round " << t;
    }
  }
}

// ---------------------------------------------------------------- spod-gt ----

// Whether nodes compute and send in round k, as the script says.
struct Sporadic {
  std::vector<double> p;      // of each node
  std::vector<double> p_hat;  // of each sender
  bool unbiased = false;

  // v_i on the diagonal, times 1/p_i where that is wanted.
  Matrix Computing(int64_t k) const {
    std::vector<double> v;
    for (size_t i = 0; i < p.size(); ++i) {
      const auto node = static_cast<int64_t>(i);
      const bool computes = script::Coin("compute", node, node, k, p[i]);
      v.push_back(!computes ? 0 : unbiased ? 1 / p[i] : 1);
    }
    return Diagonal(v);
  }
  // `weights` over the links that are drawn in round k; where one is not, its
  // weight stays where `by_rows` says: with the receiver (A), so that rows sum
  // to 1, or with the sender (B), so that columns do.
  Matrix Linked(const Matrix& weights, int64_t k, bool by_rows) const {
    Matrix out = weights;
    for (int64_t to = 0; to < out.rows(); ++to) {
      for (int64_t from = 0; from < out.rows(); ++from) {
        if (to == from || weights(to, from) == 0) continue;
        if (script::Coin("send", from, to, k, p_hat[from])) continue;
        const int64_t stays = by_rows ? to : from;
        out(stays, stays) += weights(to, from);
        out(to, from) = 0;
      }
    }
    return out;
  }
};

// Eq. (2), (3). `knobs` of node i beside eta.
void FollowSpodGt(const std::string& algorithm, const Weights& graph,
                  const Sporadic& sporadic,
                  const std::function<KnobValues(int64_t)>& knobs) {
  SCOPED_TRACE(algorithm);
  const double eta = 0.1;
  const LeastSquares f(5, kLength);
  MatrixNetwork net(algorithm, f, graph,
                    [&](int64_t i) { return With(knobs(i), "eta", eta); });
  Matrix x = Starts(5, kLength);
  Matrix g = sporadic.Computing(0) * f.Gradients(x);
  Matrix y = g;
  for (int64_t k = 0; k < kRounds; ++k) {
    net.Round();
    const Matrix mixed = sporadic.Linked(graph.hears, k, true) * x;
    const Matrix moved = sporadic.Linked(graph.sends, k, false) * y;
    x = mixed - eta * moved;
    const Matrix last =
        std::exchange(g, sporadic.Computing(k + 1) * f.Gradients(x));
    y = moved + g - last;
    ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
    ASSERT_TRUE(Close(net.Auxiliary("y"), y)) << "y, round " << k;
  }
}

const std::vector<double> kAlways(5, 1.0);
const std::vector<double> kSome = {0.4, 0.9, 0.5, 1, 0.7};
const std::vector<double> kLinks = {0.8, 0.5, 1, 0.6, 0.3};

TEST(PushPullTest, FollowsItsMatrixForm) {
  const auto knobs = [](int64_t) { return KnobValues(); };
  FollowSpodGt("push-pull", Digraph5(), {kAlways, kAlways}, knobs);
  const Arcs path = BothWays({{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  FollowSpodGt("push-pull", {ReceiverWeights(5, path), SenderWeights(5, path)},
               {kAlways, kAlways}, knobs);
}

TEST(GPushPullTest, FollowsItsMatrixForm) {
  FollowSpodGt("g-push-pull", Digraph5(), {kAlways, kLinks},
               [](int64_t i) { return KnobValues{{"p_hat", kLinks[i]}}; });
  FollowSpodGt("g-push-pull", Digraph5(), {kAlways, kAlways},
               [](int64_t) { return KnobValues{{"p_hat", 1.0}}; });
}

TEST(SporadicKGtTest, FollowsItsMatrixForm) {
  for (const std::string unbias : {"off", "on"}) {
    FollowSpodGt("sporadic-k-gt", Digraph5(), {kSome, kAlways, unbias == "on"},
                 [&](int64_t i) {
                   return KnobValues{{"p", kSome[i]}, {"unbias", unbias}};
                 });
  }
}

TEST(SpodGtTest, FollowsItsMatrixForm) {
  // auto is on: every p is at least 0.1.
  for (const std::string unbias : {"off", "auto"}) {
    FollowSpodGt("spod-gt", Digraph5(), {kSome, kLinks, unbias == "auto"},
                 [&](int64_t i) {
                   return KnobValues{{"p", kSome[i]},
                                     {"p_hat", kLinks[i]},
                                     {"unbias", unbias}};
                 });
  }
}

// ------------------------------------------------------------------- k-gt ----

TEST(KGtTest, FollowsItsMatrixForm) {
  const double eta = 0.1;
  const LeastSquares f(5, kLength);
  const Weights graph = ChordedRing();
  const Matrix& w = graph.hears;
  for (const int64_t steps : {1, 4}) {
    SCOPED_TRACE(absl::StrCat("K ", steps));
    MatrixNetwork net("k-gt", f, graph, {{"eta_c", eta}, {"K", steps}});
    const double length = static_cast<double>(steps) * eta;
    Matrix x = Starts(5, kLength);
    Matrix c(5, kLength);
    for (int64_t k = 0; k < kRounds; ++k) {
      net.Round();
      const Matrix start = x;
      for (int64_t q = 0; q < steps; ++q) x = x - eta * (f.Gradients(x) + c);
      const Matrix z = 1 / length * (start - x);
      c = c - z + w * z;
      x = w * (start - length * z);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
      ASSERT_TRUE(Close(net.Auxiliary("c"), c)) << "c, round " << k;
    }
  }
}

// -------------------------------------------------------------------- sgp ----

TEST(SgpTest, FollowsItsMatrixForm) {
  const LeastSquares f(5, kLength);
  const Arcs path = BothWays({{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const std::vector<std::pair<Weights, double>> settings = {
      {Digraph5(), 0.05},
      {{ReceiverWeights(5, path), SenderWeights(5, path)}, 0.2}};
  for (const auto& [graph, eta] : settings) {
    SCOPED_TRACE(absl::StrCat("eta ", eta));
    MatrixNetwork net("sgp", f, graph, {{"eta", eta}});
    const Matrix& b = graph.sends;
    Matrix x = Starts(5, kLength);
    Matrix omega = Matrix(5, 1).Each([](double) { return 1.0; });
    Matrix z = x;
    for (int64_t k = 0; k < kRounds; ++k) {
      net.Round();
      x = b * (x - eta * f.Gradients(z));
      omega = b * omega;
      for (int64_t i = 0; i < 5; ++i) {
        for (int64_t l = 0; l < kLength; ++l) z(i, l) = x(i, l) / omega(i, 0);
        EXPECT_NEAR(net.Gauge(i, "omega"), omega(i, 0), 1e-9);
      }
      ASSERT_TRUE(Close(net.Models(), z)) << "round " << k;
    }
  }
}

// ------------------------------------------------------------------- nids ----

TEST(NidsTest, FollowsItsMatrixForm) {
  const LeastSquares f(5, kLength);
  const Arcs path = BothWays({{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  const Matrix w = Metropolis(5, path);
  const std::vector<std::pair<Weights, double>> settings = {
      {ChordedRing(), 0.1}, {{w, w}, 0.8}};
  for (const auto& [graph, alpha] : settings) {
    SCOPED_TRACE(absl::StrCat("alpha ", alpha));
    MatrixNetwork net("nids", f, graph, {{"alpha", alpha}});
    const Matrix half = 0.5 * (Identity(5) + graph.hears);
    Matrix last = Starts(5, kLength);
    Matrix x = last - alpha * f.Gradients(last);
    net.Round();
    ASSERT_TRUE(Close(net.Models(), x)) << "round 0";
    for (int64_t k = 1; k < kRounds; ++k) {
      net.Round();
      const Matrix next =
          half * (2 * x - last - alpha * (f.Gradients(x) - f.Gradients(last)));
      last = std::exchange(x, next);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
    }
  }
}

// -------------------------------------------------------------- sync-dsgd ----

TEST(SyncDsgdTest, FollowsItsMatrixForm) {
  const double eta = 0.1;
  const LeastSquares f(5, kLength);
  for (const double xi : {1.0, 0.4}) {
    SCOPED_TRACE(absl::StrCat("xi ", xi));
    const Weights graph = ChordedRing();
    MatrixNetwork net("sync-dsgd", f, graph, {{"eta", eta}, {"xi", xi}});
    Matrix x = Starts(5, kLength);
    for (int64_t k = 0; k < kRounds; ++k) {
      net.Round();
      const Matrix stepped = x - eta * f.Gradients(x);
      x = (1 - xi) * stepped + xi * (graph.hears * stepped);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
    }
  }
}

// ------------------------------------------------------------------ local ----

TEST(LocalTest, FollowsItsMatrixForm) {
  const LeastSquares f(5, kLength);
  for (const bool decays : {false, true}) {
    SCOPED_TRACE(decays ? "1/(sigma0 gamma^k m)" : "eta");
    KnobValues knobs = {{"eta", 0.2}};
    if (decays) {
      knobs = {{"sigma0", 2.5}, {"gamma", 1.05}, {"m", int64_t{2}}};
    }
    MatrixNetwork net("local", f, ChordedRing(), knobs);
    Matrix x = Starts(5, kLength);
    for (int64_t k = 0; k < kRounds; ++k) {
      net.Round();
      const double length =
          decays ? 1 / (2.5 * std::pow(1.05, static_cast<double>(k)) * 2) : 0.2;
      x = x - length * f.Gradients(x);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
    }
    EXPECT_EQ(net.messages(), 0);
  }
}

// ------------------------------------------------------ swarm and fedavg+ ----

struct AveragingSetting {
  std::string form;
  int64_t epochs;
  double mu;
  double delta;
};

const std::vector<AveragingSetting> kAveragings = {{"gradient", 1, 1, 0},
                                                   {"gradient", 1, 1, 0.6},
                                                   {"local", 1, 1, 0},
                                                   {"local", 3, 0.7, 0}};

// [DeceFL]'s rule with W = 11'/m; from round `alone` on with W = I.
void FollowAveraging(const std::string& algorithm, const AveragingSetting& s,
                     KnobValues knobs, int64_t alone, int64_t messages) {
  SCOPED_TRACE(absl::StrCat(s.form, ", E ", s.epochs, ", delta ", s.delta));
  const double eta = 0.1;
  const int64_t m = 5;
  knobs.insert({{"form", s.form},
                {"eta", eta},
                {"E", s.epochs},
                {"mu", s.mu},
                {"delta", s.delta},
                {"Gamma", 3.0}});
  const LeastSquares f(m, kLength);
  MatrixNetwork net(algorithm, f, Complete(m), knobs);
  Matrix x = Starts(m, kLength);
  for (int64_t t = 0; t < kRounds; ++t) {
    net.Round();
    const Matrix w = t < alone ? Uniform(m) : Identity(m);
    if (s.form == "gradient") {
      const double step =
          s.delta > 0 ? s.delta / (static_cast<double>(t) + 3) : eta;
      x = w * x - step * f.Gradients(x);
    } else {
      Matrix trained = x;  // an epoch is one batch: all rows
      for (int64_t e = 0; e < s.epochs; ++e) {
        trained = trained - eta * f.Gradients(trained);
      }
      x = w * x - s.mu * (x - trained);
    }
    ASSERT_TRUE(Close(net.Models(), x)) << "round " << t;
  }
  EXPECT_EQ(net.messages(), messages);
}

// The leader, which the script draws, leaves no trace in the models.
TEST(SwarmTest, FollowsItsMatrixForm) {
  for (const AveragingSetting& setting : kAveragings) {
    FollowAveraging("swarm", setting, {}, kRounds, kRounds * 2 * 4);
  }
}

TEST(FedavgPlusTest, FollowsItsMatrixForm) {
  for (const AveragingSetting& setting : kAveragings) {
    FollowAveraging("fedavg+", setting, {{"fine_tune_from", int64_t{11}}}, 11,
                    11 * 5 * 4);
  }
}

}  // namespace
}  // namespace dfl::core
