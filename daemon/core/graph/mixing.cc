#include "daemon/core/graph/mixing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/names.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {
namespace {

constexpr double kSumTolerance = 1e-6;

absl::Status BadMatrix(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("topology.matrix", what));
}

std::string Entry(size_t row, size_t column) {
  return absl::StrCat("[", row, "][", column, "]");
}

absl::Status CheckSize(const MixingMatrix& w, size_t m) {
  if (w.size() != m) {
    return BadMatrix(absl::StrCat(": ", w.size(), " rows; one for each of the ",
                                  m, " members is needed"));
  }
  for (size_t i = 0; i < m; ++i) {
    if (w[i].size() != m) {
      return BadMatrix(absl::StrCat("[", i, "]: ", w[i].size(),
                                    " entries; one for each of the ", m,
                                    " members is needed"));
    }
  }
  return absl::OkStatus();
}

// Entry (i, j): a weight >= 0, above 0 just where there is an edge, and the
// same as entry (j, i).
absl::Status CheckEntry(const Graph& graph, const MixingMatrix& w, size_t i,
                        size_t j) {
  if (!std::isfinite(w[i][j]) || w[i][j] < 0) {
    return BadMatrix(absl::StrCat(Entry(i, j), ": ", NumberText(w[i][j]),
                                  " is not allowed; weights are numbers >= 0"));
  }
  if (i == j) return absl::OkStatus();
  const bool edge =
      graph.HasEdge(static_cast<int64_t>(i), static_cast<int64_t>(j));
  if (!edge && w[i][j] > 0) {
    return BadMatrix(absl::StrCat(Entry(i, j), ": ", NumberText(w[i][j]),
                                  ", but members ", i, " and ", j,
                                  " have no edge; make it 0 or add the edge"));
  }
  if (edge && w[i][j] == 0) {
    return BadMatrix(
        absl::StrCat(Entry(i, j), ": 0, but members ", i, " and ", j,
                     " have an edge; give it a weight > 0 or drop the edge"));
  }
  if (j < i && std::fabs(w[i][j] - w[j][i]) > kSumTolerance) {
    return BadMatrix(absl::StrCat(
        Entry(i, j), ": ", NumberText(w[i][j]), " differs from ", Entry(j, i),
        " = ", NumberText(w[j][i]), "; the matrix must be symmetric"));
  }
  return absl::OkStatus();
}

// Row and column i.
absl::Status CheckSums(const MixingMatrix& w, size_t i) {
  double row = 0;
  double column = 0;
  for (size_t j = 0; j < w.size(); ++j) {
    row += w[i][j];
    column += w[j][i];
  }
  if (std::fabs(row - 1) > kSumTolerance) {
    return BadMatrix(absl::StrCat("[", i, "]: row ", i, " sums to ",
                                  NumberText(row),
                                  "; it must be 1 within 1e-6"));
  }
  if (std::fabs(column - 1) > kSumTolerance) {
    return BadMatrix(absl::StrCat(": column ", i, " sums to ",
                                  NumberText(column),
                                  "; it must be 1 within 1e-6"));
  }
  return absl::OkStatus();
}

absl::Status CheckExplicit(const Graph& graph, const MixingMatrix& w) {
  const auto m = static_cast<size_t>(graph.size());
  DFL_RETURN_IF_ERROR(CheckSize(w, m));
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < m; ++j) {
      DFL_RETURN_IF_ERROR(CheckEntry(graph, w, i, j));
    }
  }
  for (size_t i = 0; i < m; ++i) DFL_RETURN_IF_ERROR(CheckSums(w, i));
  return absl::OkStatus();
}

// M = W - 11'/m and its transpose as operators; only W's non-zeros are stored.
class Deviation {
 public:
  explicit Deviation(const MixingMatrix& w)
      : rows_(w.size()), columns_(w.size()) {
    for (size_t i = 0; i < w.size(); ++i) {
      DFL_CHECK(w[i].size() == w.size());
      for (size_t j = 0; j < w.size(); ++j) {
        if (w[i][j] == 0) continue;
        rows_[i].emplace_back(j, w[i][j]);
        columns_[j].emplace_back(i, w[i][j]);
      }
    }
  }

  // M'M x.
  std::vector<double> ApplyGram(const std::vector<double>& x) const {
    return Apply(columns_, Apply(rows_, x));
  }

 private:
  using SparseRows = std::vector<std::vector<std::pair<size_t, double>>>;

  static std::vector<double> Apply(const SparseRows& rows,
                                   const std::vector<double>& x) {
    double mean = 0;
    for (const double value : x) mean += value;
    mean /= static_cast<double>(x.size());
    std::vector<double> out(x.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      double sum = 0;
      for (const auto& [j, weight] : rows[i]) sum += weight * x[j];
      out[i] = sum - mean;
    }
    return out;
  }

  SparseRows rows_;
  SparseRows columns_;
};

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

MixingMatrix Transposed(const MixingMatrix& w) {
  MixingMatrix out(w.size(), std::vector<double>(w.size()));
  for (size_t i = 0; i < w.size(); ++i) {
    for (size_t j = 0; j < w.size(); ++j) out[j][i] = w[i][j];
  }
  return out;
}

// The square of an n x n matrix, both row by row.
std::vector<double> Squared(const std::vector<double>& c, size_t n) {
  std::vector<double> out(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      const double factor = c[i * n + k];
      if (factor == 0) continue;
      for (size_t j = 0; j < n; ++j) out[i * n + j] += factor * c[k * n + j];
    }
  }
  return out;
}

// The largest eigenvalue of a symmetric tridiagonal matrix and the size of the
// last component of its unit eigenvector. Implicit QL with Wilkinson's shift;
// of the eigenvectors only the last row is kept.
struct RitzPair {
  double value = 0;
  double last_component = 0;
};
RitzPair LargestRitzPair(std::vector<double> diagonal,
                         std::vector<double> off_diagonal) {
  const size_t k = diagonal.size();
  off_diagonal.resize(k, 0);  // off_diagonal[k - 1] = 0 is the sentinel
  std::vector<double> last(k, 0);
  last[k - 1] = 1;
  std::vector<double>& d = diagonal;
  std::vector<double>& e = off_diagonal;
  for (size_t l = 0; l < k; ++l) {
    for (int sweep = 0; sweep < 100; ++sweep) {
      size_t end = l;
      while (end + 1 < k) {
        const double scale = std::fabs(d[end]) + std::fabs(d[end + 1]);
        if (scale + std::fabs(e[end]) == scale) break;
        ++end;
      }
      if (end == l) break;
      double g = (d[l + 1] - d[l]) / (2 * e[l]);
      double r = std::sqrt(g * g + 1);
      g = d[end] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
      double s = 1;
      double c = 1;
      double p = 0;
      bool split = false;
      for (size_t i = end; i-- > l;) {
        const double f = s * e[i];
        const double b = c * e[i];
        r = std::sqrt(f * f + g * g);
        e[i + 1] = r;
        if (r == 0) {  // the matrix falls apart here
          d[i + 1] -= p;
          e[end] = 0;
          split = true;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        const double upper = last[i + 1];
        last[i + 1] = s * last[i] + c * upper;
        last[i] = c * last[i] - s * upper;
      }
      if (split) continue;
      d[l] -= p;
      e[l] = g;
      e[end] = 0;
    }
  }
  const auto top = std::max_element(d.begin(), d.end()) - d.begin();
  return RitzPair{d[static_cast<size_t>(top)],
                  std::fabs(last[static_cast<size_t>(top)])};
}

}  // namespace

absl::Status CheckMixing(absl::string_view rule, const Graph& graph,
                         const MixingMatrix& matrix) {
  if (rule == "metropolis" || rule == "laplacian") return absl::OkStatus();
  if (rule == "uniform") {
    for (int64_t i = 0; i < graph.size(); ++i) {
      if (graph.degree(i) == graph.size() - 1) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "topology.weights: \"uniform\" needs the complete graph, but member ",
          i, " has ", graph.degree(i), " of ", graph.size() - 1,
          " neighbours; set topology.kind: complete, or weights: metropolis or "
          "laplacian"));
    }
    return absl::OkStatus();
  }
  if (rule == "explicit") return CheckExplicit(graph, matrix);
  return UnknownNameError("topology.weights", rule,
                          {"metropolis", "laplacian", "uniform", "explicit"});
}

MixingRow BuildMixingRow(absl::string_view rule, const Graph& graph,
                         const MixingMatrix& matrix, int64_t node) {
  const std::vector<int64_t>& neighbours = graph.neighbours(node);
  MixingRow row;
  row.weights.reserve(neighbours.size());
  if (rule == "explicit") {
    const std::vector<double>& given = matrix[static_cast<size_t>(node)];
    for (const int64_t j : neighbours) {
      row.weights.push_back(given[static_cast<size_t>(j)]);
    }
    row.self = given[static_cast<size_t>(node)];
    return row;
  }
  if (rule == "uniform") {
    row.self = 1.0 / static_cast<double>(graph.size());
    row.weights.assign(neighbours.size(), row.self);
    return row;
  }
  DFL_CHECK(rule == "metropolis" || rule == "laplacian");
  int64_t max_degree = 0;
  if (rule == "laplacian") {
    for (int64_t i = 0; i < graph.size(); ++i) {
      max_degree = std::max(max_degree, graph.degree(i));
    }
  }
  double others = 0;
  for (const int64_t j : neighbours) {
    const int64_t degree = rule == "laplacian"
                               ? max_degree
                               : std::max(graph.degree(node), graph.degree(j));
    row.weights.push_back(1.0 / static_cast<double>(1 + degree));
    others += row.weights.back();
  }
  row.self = 1 - others;
  return row;
}

absl::StatusOr<MixingMatrix> BuildMixing(absl::string_view rule,
                                         const Graph& graph,
                                         const MixingMatrix& matrix) {
  DFL_RETURN_IF_ERROR(CheckMixing(rule, graph, matrix));
  const auto m = static_cast<size_t>(graph.size());
  MixingMatrix w(m, std::vector<double>(m, 0.0));
  for (int64_t i = 0; i < graph.size(); ++i) {
    const MixingRow row = BuildMixingRow(rule, graph, matrix, i);
    std::vector<double>& out = w[static_cast<size_t>(i)];
    const std::vector<int64_t>& neighbours = graph.neighbours(i);
    for (size_t q = 0; q < neighbours.size(); ++q) {
      out[static_cast<size_t>(neighbours[q])] = row.weights[q];
    }
    out[static_cast<size_t>(i)] = row.self;
  }
  return w;
}

// Lanczos on M'M with full reorthogonalisation: lambda^2 is its largest
// eigenvalue. A Ritz value is off by at most beta_k |last component of its
// eigenvector|, which ends the iteration; at the latest the Krylov space is
// exhausted after as many steps as there are distinct eigenvalues.
double SecondSingularValue(const MixingMatrix& w) {
  DFL_CHECK(!w.empty());
  const size_t m = w.size();
  const Deviation deviation(w);

  // A seeded start: no eigenvector is likely to be orthogonal to it.
  Rng rng(DeriveSeed(0, "second singular value"));
  std::vector<double> q(m);
  for (double& value : q) value = rng.Uniform() - 0.5;
  const double norm = std::sqrt(Dot(q, q));
  for (double& value : q) value /= norm;

  std::vector<std::vector<double>> basis;
  std::vector<double> alphas;
  std::vector<double> betas;
  double largest = 0;
  size_t next_check = 4;
  for (;;) {
    std::vector<double> r = deviation.ApplyGram(q);
    alphas.push_back(Dot(q, r));
    basis.push_back(std::move(q));
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& b : basis) {
        const double along = Dot(b, r);
        for (size_t i = 0; i < m; ++i) r[i] -= along * b[i];
      }
    }
    const double beta = std::sqrt(Dot(r, r));
    double scale = 0;
    for (const double alpha : alphas) scale = std::max(scale, alpha);
    const bool exhausted = basis.size() == m || beta <= 1e-14 * scale;
    if (exhausted || basis.size() >= next_check) {
      const RitzPair top = LargestRitzPair(alphas, betas);
      largest = top.value;
      const double tolerance = std::max(1e-12 * top.value, 1e-22);
      if (exhausted || beta * top.last_component <= tolerance) break;
      next_check = basis.size() + basis.size() / 4 + 1;
    }
    betas.push_back(beta);
    for (double& value : r) value /= beta;
    q = std::move(r);
  }
  return std::sqrt(std::max(0.0, largest));
}

DirectedWeights BuildDirectedWeights(const Digraph& graph) {
  const auto m = static_cast<size_t>(graph.size());
  DirectedWeights out;
  out.a.assign(m, std::vector<double>(m, 0.0));
  out.b = out.a;
  for (int64_t i = 0; i < graph.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    out.a[at][at] = ReceiverWeight(graph, i);
    out.b[at][at] = SenderWeight(graph, i);
    for (const int64_t j : graph.in(i)) {
      out.a[at][static_cast<size_t>(j)] = ReceiverWeight(graph, i);
      out.b[at][static_cast<size_t>(j)] = SenderWeight(graph, j);
    }
  }
  return out;
}

std::vector<double> LeastOmega(const Digraph& graph) {
  constexpr int kMostPasses = 10'000;
  constexpr double kStill = 1e-9;  // relative change in a pass
  const auto m = static_cast<size_t>(graph.size());
  std::vector<double> omega(m, 1.0);
  std::vector<double> least(m, 1.0);
  std::vector<double> next(m);
  bool moved = true;
  for (int pass = 0; moved && pass < kMostPasses; ++pass) {
    moved = false;
    for (size_t i = 0; i < m; ++i) {
      const auto node = static_cast<int64_t>(i);
      next[i] = SenderWeight(graph, node) * omega[i];
      for (const int64_t from : graph.in(node)) {
        next[i] += SenderWeight(graph, from) * omega[static_cast<size_t>(from)];
      }
      moved = moved || std::fabs(next[i] - omega[i]) > kStill * omega[i];
      least[i] =
          std::min(least[i], next[i] * std::min(1.0, next[i] / omega[i]));
    }
    omega.swap(next);
  }
  return least;
}

std::vector<double> RowSums(const MixingMatrix& w) {
  std::vector<double> sums;
  for (const std::vector<double>& row : w) {
    double sum = 0;
    for (const double value : row) sum += value;
    sums.push_back(sum);
  }
  return sums;
}

std::vector<double> ColumnSums(const MixingMatrix& w) {
  return RowSums(Transposed(w));
}

// With rows that sum to 1, W maps differences to the last coordinate to such
// differences: (Wx)_i - (Wx)_m = sum_j (w_ij - w_mj) (x_j - x_m). The matrix C
// of that map has W's eigenvalues but for one 1, and the largest modulus of
// those is lim |C^k|^(1/k) (Gelfand), here along k = 1, 2, 4, 8, ...
double SecondLargestModulus(const MixingMatrix& w) {
  DFL_CHECK(!w.empty());
  const auto sum_to_1 = [](const std::vector<double>& sums) {
    return std::all_of(sums.begin(), sums.end(), [](double sum) {
      return std::fabs(sum - 1) <= kSumTolerance;
    });
  };
  if (!sum_to_1(RowSums(w))) {
    DFL_CHECK(sum_to_1(ColumnSums(w)));
    return SecondLargestModulus(Transposed(w));
  }
  const size_t n = w.size() - 1;
  std::vector<double> c(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) c[i * n + j] = w[i][j] - w[n][j];
  }
  // C^k is kept as `c`, of norm 1; log_modulus = ln(|C^k|) / k so far.
  double log_modulus = 0;
  for (double share = 1; share > 1e-12; share /= 2) {
    const double norm = std::sqrt(Dot(c, c));
    if (norm == 0) return 0;
    log_modulus += share * Log(norm);
    for (double& value : c) value /= norm;
    c = Squared(c, n);
  }
  return Exp(log_modulus);
}

}  // namespace dfl::core
