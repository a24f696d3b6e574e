#include "tests/unit/core/matrix.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"

namespace dfl::core {
namespace {

constexpr uint64_t kSeed = 20;

}  // namespace

// --------------------------------------------------------------- matrices ----

Matrix Matrix::Each(const std::function<double(double)>& f) const {
  Matrix out = *this;
  std::transform(values_.begin(), values_.end(), out.values_.begin(), f);
  return out;
}

double Matrix::Largest() const {
  double largest = 0;
  for (const double value : values_) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

Matrix operator+(Matrix a, const Matrix& b) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t l = 0; l < a.columns(); ++l) a(i, l) += b(i, l);
  }
  return a;
}

Matrix operator-(Matrix a, const Matrix& b) { return std::move(a) + -1.0 * b; }

Matrix operator*(double a, const Matrix& b) {
  return b.Each([a](double value) { return a * value; });
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows(), b.columns());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) {
      for (int64_t l = 0; l < b.columns(); ++l) out(i, l) += a(i, j) * b(j, l);
    }
  }
  return out;
}

Matrix Identity(int64_t m) { return Diagonal(std::vector<double>(m, 1.0)); }

Matrix Diagonal(const std::vector<double>& entries) {
  const auto m = static_cast<int64_t>(entries.size());
  Matrix out(m, m);
  for (int64_t i = 0; i < m; ++i) out(i, i) = entries[i];
  return out;
}

// ---------------------------------------------------------------- weights ----

Arcs BothWays(const Arcs& edges) {
  Arcs arcs;
  for (const auto& [a, b] : edges) {
    arcs.emplace_back(a, b);
    arcs.emplace_back(b, a);
  }
  return arcs;
}

Matrix Metropolis(int64_t m, const Arcs& arcs) {
  std::vector<double> degree(m, 0.0);
  for (const auto& [from, to] : arcs) degree[from] += 1;
  Matrix w = Identity(m);
  for (const auto& [from, to] : arcs) {
    w(to, from) = 1 / (1 + std::max(degree[from], degree[to]));
    w(to, to) -= w(to, from);
  }
  return w;
}

Matrix Uniform(int64_t m) {
  return Matrix(m, m).Each([m](double) { return 1 / static_cast<double>(m); });
}

Matrix ReceiverWeights(int64_t m, const Arcs& arcs) {
  std::vector<double> heard(m, 0.0);
  for (const auto& [from, to] : arcs) heard[to] += 1;
  Matrix a(m, m);
  for (int64_t i = 0; i < m; ++i) a(i, i) = 1 / (1 + heard[i]);
  for (const auto& [from, to] : arcs) a(to, from) = 1 / (1 + heard[to]);
  return a;
}

Matrix SenderWeights(int64_t m, const Arcs& arcs) {
  std::vector<double> sends(m, 0.0);
  for (const auto& [from, to] : arcs) sends[from] += 1;
  Matrix b(m, m);
  for (int64_t i = 0; i < m; ++i) b(i, i) = 1 / (1 + sends[i]);
  for (const auto& [from, to] : arcs) b(to, from) = 1 / (1 + sends[from]);
  return b;
}

Weights ChordedRing() {
  const Matrix w =
      Metropolis(5, BothWays({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 2}}));
  return {w, w};
}

Weights Digraph5() {
  const Arcs arcs = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 3}, {2, 0}};
  return {ReceiverWeights(5, arcs), SenderWeights(5, arcs)};
}

Weights Complete(int64_t m) { return {Uniform(m), Uniform(m)}; }

// --------------------------------------------------------------- problems ----

LeastSquares::LeastSquares(int64_t nodes, int64_t n) : n_(n) {
  constexpr int64_t kRows = 8;
  Rng rng(kSeed);
  for (int64_t i = 0; i < nodes; ++i) {
    Matrix hessian(n, n);
    std::vector<double> h(n, 0.0);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> a(n);
      for (double& value : a) value = 2 * rng.Uniform() - 1;
      const double b = static_cast<double>(i) - 2 + 2 * rng.Uniform();
      for (int64_t l = 0; l < n; ++l) {
        h[l] += a[l] * b / kRows;
        for (int64_t q = 0; q < n; ++q) hessian(l, q) += a[l] * a[q] / kRows;
      }
    }
    hessian_.push_back(std::move(hessian));
    h_.push_back(std::move(h));
  }
}

std::vector<double> LeastSquares::Gradient(int64_t node,
                                           absl::Span<const double> w) const {
  std::vector<double> g(n_);
  for (int64_t l = 0; l < n_; ++l) {
    g[l] = -h_[node][l];
    for (int64_t q = 0; q < n_; ++q) g[l] += hessian_[node](l, q) * w[q];
  }
  return g;
}

Matrix LeastSquares::Gradients(const Matrix& x) const {
  Matrix g(nodes(), n_);
  for (int64_t i = 0; i < nodes(); ++i) {
    const std::vector<double> row = Gradient(i, x.row(i));
    for (int64_t l = 0; l < n_; ++l) g(i, l) = row[l];
  }
  return g;
}

Matrix Starts(int64_t nodes, int64_t n) {
  Rng rng(kSeed + 1);
  return Matrix(nodes, n).Each(
      [&](double) { return static_cast<float>(2 * rng.Uniform() - 1); });
}

// ----------------------------------------------------------------- checks ----

testing::AssertionResult Close(const Matrix& got, const Matrix& want,
                               double tolerance) {
  const double bound = tolerance * std::max(1.0, want.Largest());
  double most = 0;
  std::string where;
  for (int64_t i = 0; i < want.rows(); ++i) {
    for (int64_t l = 0; l < want.columns(); ++l) {
      const double differs = std::fabs(got(i, l) - want(i, l));
      if (differs <= most) continue;
      most = differs;
      where = absl::StrCat("node ", i, ", coordinate ", l, ": ", got(i, l),
                           " instead of ", want(i, l));
    }
  }
  if (most <= bound) return testing::AssertionSuccess();
  return testing::AssertionFailure() << where;
}

}  // namespace dfl::core
