#include "tests/sim/optimum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/solve.h"

namespace dfl::sim {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

constexpr int kMostIterations = 60;
constexpr double kRidge = 1e-6;
constexpr double kDifference = 1.0 / 64;

std::vector<float> Rounded(const Vector& w) {
  return std::vector<float>(w.begin(), w.end());
}

double Loss(const Problems& problems, const Vector& w) {
  const std::vector<float> rounded = Rounded(w);
  double sum = 0;
  for (const auto& problem : problems) sum += problem->Loss(rounded);
  return sum / static_cast<double>(problems.size());
}

Vector Gradient(const simports::Problem& problem, const Vector& w) {
  std::vector<float> out(w.size());
  problem.Gradient(Rounded(w), {}, absl::MakeSpan(out));
  return Vector(out.begin(), out.end());
}

Vector Gradient(const Problems& problems, const Vector& w) {
  Vector mean(w.size(), 0.0);
  for (const auto& problem : problems) {
    const Vector own = Gradient(*problem, w);
    for (size_t l = 0; l < w.size(); ++l) {
      mean[l] += own[l] / static_cast<double>(problems.size());
    }
  }
  return mean;
}

template <typename Function>
Matrix Hessian(const Function& gradient, Vector w) {
  Matrix hessian(w.size(), Vector(w.size()));
  for (size_t l = 0; l < w.size(); ++l) {
    const double middle = w[l];
    w[l] = middle + kDifference;
    const Vector after = gradient(w);
    w[l] = middle - kDifference;
    const Vector before = gradient(w);
    w[l] = middle;
    for (size_t k = 0; k < w.size(); ++k) {
      hessian[k][l] = (after[k] - before[k]) / (2 * kDifference);
    }
  }
  return hessian;
}

double Norm(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

// By the power method, of a symmetric matrix without negative eigenvalues.
double LargestEigenvalue(const Matrix& a) {
  Vector v(a.size(), 1.0);
  double value = 0;
  for (int i = 0; i < 100; ++i) {
    Vector next(a.size(), 0.0);
    for (size_t k = 0; k < a.size(); ++k) {
      for (size_t l = 0; l < a.size(); ++l) next[k] += a[k][l] * v[l];
    }
    value = Norm(next) / Norm(v);
    if (Norm(next) == 0) return 0;
    v = std::move(next);
    const double size = Norm(v);
    for (double& x : v) x /= size;
  }
  return value;
}

// a + kRidge I: softmax regression has directions in which nothing changes.
Matrix Ridged(Matrix a) {
  for (size_t k = 0; k < a.size(); ++k) a[k][k] += kRidge;
  return a;
}

}  // namespace

Optimum FindOptimum(const Problems& nodes) {
  const auto n = static_cast<size_t>(nodes.front()->n());
  Optimum optimum;
  for (const auto& node : nodes) {
    const auto gradient = [&](const Vector& w) { return Gradient(*node, w); };
    optimum.smoothness =
        std::max(optimum.smoothness,
                 LargestEigenvalue(Hessian(gradient, Vector(n, 0.0))));
  }
  Vector w(n, 0.0);
  optimum.loss = Loss(nodes, w);
  for (int i = 0; i < kMostIterations; ++i) {
    const auto gradient = [&](const Vector& at) { return Gradient(nodes, at); };
    const Vector step = Solve(Ridged(Hessian(gradient, w)), gradient(w));
    bool better = false;
    for (double length = 1; length > 1e-4 && !better; length /= 2) {
      Vector next = w;
      for (size_t l = 0; l < n; ++l) next[l] -= length * step[l];
      const double loss = Loss(nodes, next);
      better = loss < optimum.loss;
      if (!better) continue;
      optimum.loss = loss;
      w = std::move(next);
    }
    if (!better) break;
  }
  optimum.gradient = Norm(Gradient(nodes, w));
  return optimum;
}

}  // namespace dfl::sim
