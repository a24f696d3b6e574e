// As matrix_form_test.cc: the algorithms that send a part of what they have, or
// less of it than fp32. What they choose at random is scripted and read by both
// sides. What they choose by comparing must not hang on a rounding of floats:
// the matrix form checks that it is no tie.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/core/matrix_network.h"

namespace dfl::core {
namespace {

constexpr int64_t kLength = 7;
constexpr int64_t kRounds = 30;

// Of an entry that is compared with another: more than floats err by.
constexpr double kNoTie = 5e-7;

// max(1, floor(rate n + 1/2)).
int64_t CountOf(double rate, int64_t n) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::floor(rate * static_cast<double>(n) + 0.5)));
}

// ------------------------------------------------------------ compressors ----

struct Compressor {
  std::string name;
  double rate = 1;

  // C(v) of each row, the `nth` of `purpose`.
  Matrix Of(const Matrix& v, const std::string& purpose, int64_t nth) const {
    Matrix c(v.rows(), v.columns());
    for (int64_t i = 0; i < v.rows(); ++i) {
      if (name == "sign") {
        Sign(v, i, c);
        continue;
      }
      const int64_t count = CountOf(rate, v.columns());
      for (const int64_t l :
           name == "topk"
               ? Largest(v.row(i), count)
               : script::Places(purpose, i, nth, v.columns(), count)) {
        c(i, l) = v(i, l);
      }
    }
    return c;
  }

 private:
  static std::vector<int64_t> Largest(absl::Span<const double> v,
                                      int64_t count) {
    std::vector<int64_t> order(v.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::fabs(v[a]) > std::fabs(v[b]);
    });
    if (count < static_cast<int64_t>(v.size())) {
      const double gap =
          std::fabs(v[order[count - 1]]) - std::fabs(v[order[count]]);
      EXPECT_GT(gap, kNoTie) << "a tie of the test's making: another seed";
    }
    order.resize(count);
    return order;
  }
  // (|v|_1/|B|) sign(v) in each block B of 256.
  static void Sign(const Matrix& v, int64_t i, Matrix& c) {
    for (int64_t begin = 0; begin < v.columns(); begin += 256) {
      const int64_t end = std::min(v.columns(), begin + 256);
      double sum = 0;
      for (int64_t l = begin; l < end; ++l) sum += std::fabs(v(i, l));
      for (int64_t l = begin; l < end; ++l) {
        EXPECT_GT(std::fabs(v(i, l)), kNoTie) << "another seed";
        c(i, l) =
            (v(i, l) < 0 ? -1 : 1) * sum / static_cast<double>(end - begin);
      }
    }
  }
};

struct CompressedSetting {
  Compressor compressor;
  double eta;
  double gamma;
  int64_t n = kLength;
  int64_t rounds = kRounds;

  KnobValues Knobs() const {
    return {{"compressor", compressor.name},
            {"rate", compressor.rate},
            {"eta", eta},
            {"gamma", gamma}};
  }
  std::string Name() const {
    return absl::StrCat(compressor.name, " ", compressor.rate, ", n ", n);
  }
};

// -------------------------------------------------------------- choco-sgd ----

TEST(ChocoSgdTest, FollowsItsMatrixForm) {
  const Weights graph = ChordedRing();
  const Matrix& w = graph.hears;
  for (const CompressedSetting& s :
       std::vector<CompressedSetting>{{{"topk", 0.3}, 0.1, 0.4},
                                      {{"topk", 1}, 0.1, 1},
                                      {{"mask", 0.4}, 0.2, 0.3},
                                      {{"sign"}, 0.1, 0.3},
                                      {{"sign"}, 0.1, 0.2, 270, 6}}) {
    SCOPED_TRACE(s.Name());
    const LeastSquares f(5, s.n);
    MatrixNetwork net("choco-sgd", f, graph, s.Knobs());
    Matrix x = Starts(5, s.n);
    Matrix x_hat(5, s.n);
    for (int64_t k = 0; k < s.rounds; ++k) {
      net.Round();
      x = x - s.eta * f.Gradients(x);
      x_hat = x_hat + s.compressor.Of(x - x_hat, "replica", k);
      x = x + s.gamma * ((w - Identity(5)) * x_hat);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
    }
  }
}

// ------------------------------------------------------------------- beer ----

TEST(BeerTest, FollowsItsMatrixForm) {
  const Weights graph = ChordedRing();
  const Matrix mixes = graph.hears - Identity(5);
  for (const CompressedSetting& s :
       std::vector<CompressedSetting>{{{"topk", 0.3}, 0.05, 0.2},
                                      {{"topk", 1}, 0.1, 0.8},
                                      {{"mask", 0.6}, 0.05, 0.3},
                                      {{"sign"}, 0.05, 0.2}}) {
    SCOPED_TRACE(s.Name());
    const LeastSquares f(5, s.n);
    MatrixNetwork net("beer", f, graph, s.Knobs());
    Matrix x = Starts(5, s.n);
    Matrix gradients = f.Gradients(x);
    Matrix v = gradients;
    Matrix h(5, s.n), g(5, s.n);
    for (int64_t k = 0; k < s.rounds; ++k) {
      net.Round();
      x = x + s.gamma * (mixes * h) - s.eta * v;
      h = h + s.compressor.Of(x - h, "h", k);
      const Matrix last = std::exchange(gradients, f.Gradients(x));
      v = v + s.gamma * (mixes * g) + gradients - last;
      g = g + s.compressor.Of(v - g, "g", k);
      ASSERT_TRUE(Close(net.Models(), x)) << "round " << k;
      ASSERT_TRUE(Close(net.Auxiliary("v"), v)) << "v, round " << k;
    }
  }
}

// --------------------------------------------------------------- anq-nids ----

struct AnqSetting {
  int64_t bits;
  double range;
  double rho;
  double alpha;
};

// While both sides send the same codes, what h is off by is not fed back: up to
// 6e-8 a round, in one direction since core rounds the step of codes to fp32.
// It adds up in h, and h in D: 20^2/2 * 6e-8 = 1.2e-5 in 20 rounds. (Measured:
// 7e-6.)
constexpr int64_t kAnqRounds = 20;
constexpr double kAnqTolerance = 4 * 1.2e-5;
constexpr double kAnqNoTie = 1.2e-5;

// The paper's range only shrinks. Core's widens where a difference does not fit
// it (docs/papers 40), which here none does.
TEST(AnqNidsTest, FollowsItsMatrixForm) {
  const Weights graph = ChordedRing();
  const Matrix half = 0.5 * (Identity(5) - graph.hears);
  const LeastSquares f(5, kLength);
  for (const AnqSetting& s : std::vector<AnqSetting>{{8, 3, 0.97, 0.3},
                                                     {4, 4, 0.98, 0.1},
                                                     {2, 2.1, 0.95, 0.3},
                                                     {10, 5, 1, 0.5}}) {
    SCOPED_TRACE(absl::StrCat(s.bits, " bits"));
    MatrixNetwork net("anq-nids", f, graph,
                      {{"bits", s.bits},
                       {"R0", s.range},
                       {"rho", s.rho},
                       {"alpha", s.alpha}});
    const double most = std::pow(2, static_cast<double>(s.bits - 1));
    double range = s.range;
    Matrix x = Starts(5, kLength);
    Matrix d(5, kLength), h(5, kLength);
    for (int64_t k = 0; k < kAnqRounds; ++k) {
      net.Round();
      const Matrix phi = x - s.alpha * (f.Gradients(x) + d);
      const double step = 2 * range / (2 * most - 1);
      ASSERT_LT((phi - h).Largest(), range) << "does not fit: a larger R0";
      h = h + (phi - h).Each([&](double v) {
        const double place = std::clamp(v, -range, range) / step - 0.5;
        const double code = std::clamp(std::rint(place), -most, most - 1);
        EXPECT_LT(std::fabs(place - std::rint(place)), 0.5 - kAnqNoTie / step)
            << "a tie of the test's making: another seed";
        return (code + 0.5) * step;
      });
      const Matrix c = half * h;
      x = phi - c;
      d = d + 1 / s.alpha * c;
      range = s.rho * range;
      ASSERT_TRUE(Close(net.Models(), x, kAnqTolerance)) << "round " << k;
    }
  }
}

// ------------------------------------------------------------------- pame ----

struct PameSetting {
  double nu;
  double p;
  IntRange kappa;
  double sigma0;
  double gamma;
  int64_t lookahead;
};

// kappa is drawn once, whom a node asks in each exchange, and which coordinates
// are in each answer.
class PameRecursion {
 public:
  PameRecursion(const LeastSquares& f, const Matrix& w, const PameSetting& s)
      : f_(f),
        s_(s),
        x_(Starts(f.nodes(), f.n())),
        sigma_(s.sigma0),
        exchanges_(f.nodes(), 0),
        answers_(f.nodes(), std::vector<int64_t>(f.nodes(), 0)) {
    for (int64_t i = 0; i < f.nodes(); ++i) {
      neighbours_.emplace_back();
      for (int64_t j = 0; j < f.nodes(); ++j) {
        if (j != i && w(i, j) > 0) neighbours_[i].push_back(j);
      }
      const auto degree = static_cast<double>(neighbours_[i].size());
      m_.push_back(std::max(1.0, std::ceil(s.nu * degree - 1e-9)));
    }
  }

  void Step(int64_t k) {
    // M x, where M is the identity but for rows of nodes that exchange; another
    // M for each coordinate.
    Matrix mean = x_;
    for (int64_t i = 0; i < f_.nodes(); ++i) {
      if (k % script::Drawn(i, s_.kappa) == 0) Exchange(i, mean);
    }
    const Matrix g = f_.Gradients(mean);
    Matrix lengths(f_.nodes(), f_.nodes());
    for (int64_t i = 0; i < f_.nodes(); ++i) {
      lengths(i, i) = 1 / (sigma_ * m_[i]);
    }
    x_ = mean - lengths * g;
    sigma_ *= s_.gamma;
  }

  const Matrix& x() const { return x_; }
  // Coordinates that no answer held, of all that were asked for.
  int64_t uncovered() const { return uncovered_; }

 private:
  void Exchange(int64_t i, Matrix& mean) {
    const int64_t n = f_.n();
    std::vector<double> sum(n, 0.0), count(n, 0.0);
    const auto degree = static_cast<int64_t>(neighbours_[i].size());
    for (const int64_t place :
         script::Places("neighbours", i, exchanges_[i]++, degree,
                        static_cast<int64_t>(m_[i]))) {
      const int64_t j = neighbours_[i][place];
      const uint64_t name = script::Name(j, i, answers_[j][i]++);
      for (const int64_t l : NamedCoordinates(name, n, CountOf(s_.p, n))) {
        sum[l] += x_(j, l);
        count[l] += 1;
      }
    }
    for (int64_t l = 0; l < n; ++l) {
      if (count[l] > 0) {
        mean(i, l) = sum[l] / count[l];
      } else {
        ++uncovered_;
      }
    }
  }

  const LeastSquares& f_;
  const PameSetting s_;
  Matrix x_;
  double sigma_;
  std::vector<std::vector<int64_t>> neighbours_;
  std::vector<double> m_;
  std::vector<int64_t> exchanges_;
  std::vector<std::vector<int64_t>> answers_;
  int64_t uncovered_ = 0;
};

TEST(PameTest, FollowsItsMatrixForm) {
  const LeastSquares f(5, kLength);
  const Weights graph = ChordedRing();
  for (const PameSetting& s : std::vector<PameSetting>{
           {1, 1, {1, 1}, 1, 1.01, 0},  // all of all, every step
           {0.5, 0.3, {2, 4}, 1.5, 1.002, 0},
           {0.5, 0.3, {2, 4}, 1.5, 1.002, 1},
           {0.7, 0.6, {3, 3}, 2, 1, 1},
           {0.2, 0.05, {1, 3}, 3, 1.05, 1}}) {
    SCOPED_TRACE(
        absl::StrCat("nu ", s.nu, ", p ", s.p, ", lookahead ", s.lookahead));
    const KnobValues knobs = {{"nu", s.nu},       {"p", s.p},
                              {"kappa", s.kappa}, {"sigma0", s.sigma0},
                              {"gamma", s.gamma}, {"lookahead", s.lookahead}};
    MatrixNetwork net(
        "pame", f, graph, [&](int64_t) { return knobs; },
        s.lookahead == 0 ? Asks::kAtOnce : Asks::kAtTheEnd);
    PameRecursion naive(f, graph.hears, s);
    for (int64_t k = 0; k < kRounds; ++k) {
      net.Round();
      naive.Step(k);
      ASSERT_TRUE(Close(net.Models(), naive.x())) << "round " << k;
    }
    EXPECT_EQ(naive.uncovered() > 0, s.p < 1);
  }
}

}  // namespace
}  // namespace dfl::core
