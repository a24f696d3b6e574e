#include "daemon/simports/problems.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"

namespace dfl::simports {
namespace {

int64_t Columns(const std::vector<double>& matrix, size_t rows) {
  DFL_CHECK(rows >= 1 && !matrix.empty() && matrix.size() % rows == 0);
  return static_cast<int64_t>(matrix.size() / rows);
}

double Dot(const double* a, absl::Span<const float> w) {
  double sum = 0;
  for (size_t l = 0; l < w.size(); ++l) sum += a[l] * w[l];
  return sum;
}

double SquaredNorm(absl::Span<const float> w) {
  double squares = 0;
  for (const float value : w) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return squares;
}

// Calls visit(row) for each row of `batch`, or for all when it is empty, and
// returns how many there were.
template <typename Visit>
double ForEachRow(int64_t rows, absl::Span<const int64_t> batch, Visit visit) {
  if (batch.empty()) {
    for (int64_t row = 0; row < rows; ++row) visit(row);
    return static_cast<double>(rows);
  }
  for (const int64_t row : batch) {
    DFL_CHECK(row >= 0 && row < rows);
    visit(row);
  }
  return static_cast<double>(batch.size());
}

// ln(1 + e^z) without overflow.
double SoftPlus(double z) {
  return z > 0 ? z + Log(1 + Exp(-z)) : Log(1 + Exp(z));
}

// 1/(1 + e^-z) without overflow.
double Sigmoid(double z) {
  if (z >= 0) return 1 / (1 + Exp(-z));
  const double e = Exp(z);
  return e / (1 + e);
}

void Round(const std::vector<double>& values, absl::Span<float> out) {
  for (size_t l = 0; l < values.size(); ++l) {
    out[l] = static_cast<float>(values[l]);
  }
}

// w* with `count` entries at random places, uniformly from [-2, -0.5] and
// [0.5, 2].
std::vector<double> SparseTruth(uint64_t seed, int64_t n, int64_t count) {
  Rng rng(DeriveSeed(seed, "example truth"));
  std::vector<int64_t> places(static_cast<size_t>(n));
  for (int64_t l = 0; l < n; ++l) places[static_cast<size_t>(l)] = l;
  rng.Shuffle(absl::MakeSpan(places));
  std::vector<double> truth(static_cast<size_t>(n), 0.0);
  for (int64_t q = 0; q < count; ++q) {
    const double size = 0.5 + 1.5 * rng.Uniform();
    truth[static_cast<size_t>(places[static_cast<size_t>(q)])] =
        rng.Bernoulli(0.5) ? size : -size;
  }
  return truth;
}

// Draws `spec.rows_per_node` rows of N(0, 1) for node `node` and hands the
// inner product of each with w* to `label`, whose results become b.
template <typename Label>
std::pair<std::vector<double>, std::vector<double>> DrawData(
    const ExampleSpec& spec, int64_t node, const std::vector<double>& truth,
    Label label) {
  Rng rng(DeriveSeed(spec.seed, "example data", static_cast<uint64_t>(node)));
  std::vector<double> a;
  std::vector<double> b;
  a.reserve(static_cast<size_t>(spec.rows_per_node * spec.n));
  for (int64_t row = 0; row < spec.rows_per_node; ++row) {
    double inner = 0;
    for (int64_t l = 0; l < spec.n; ++l) {
      a.push_back(Normal(rng));
      inner += a.back() * truth[static_cast<size_t>(l)];
    }
    b.push_back(label(rng, inner));
  }
  return {std::move(a), std::move(b)};
}

void CheckSpec(const ExampleSpec& spec) {
  DFL_CHECK(spec.nodes >= 1 && spec.n >= 1 && spec.rows_per_node >= 1);
}

int64_t NonZeros(double share, int64_t n) {
  return std::max<int64_t>(
      1,
      static_cast<int64_t>(std::floor(share * static_cast<double>(n) + 0.5)));
}

}  // namespace

// ---------------------------------------------------------- LeastSquares ----

LeastSquares::LeastSquares(std::vector<double> a, std::vector<double> b)
    : a_(std::move(a)), b_(std::move(b)), n_(Columns(a_, b_.size())) {}

double LeastSquares::Loss(absl::Span<const float> w,
                          absl::Span<const int64_t> batch) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n_);
  double sum = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    const double r = Dot(&a_[static_cast<size_t>(row * n_)], w) -
                     b_[static_cast<size_t>(row)];
    sum += r * r;
  });
  return sum / (2 * count);
}

double LeastSquares::Gradient(absl::Span<const float> w,
                              absl::Span<const int64_t> batch,
                              absl::Span<float> out) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n_ && out.size() == w.size());
  std::vector<double> sum(w.size(), 0.0);
  double squares = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    const double* a = &a_[static_cast<size_t>(row * n_)];
    const double r = Dot(a, w) - b_[static_cast<size_t>(row)];
    squares += r * r;
    for (size_t l = 0; l < sum.size(); ++l) sum[l] += r * a[l];
  });
  for (double& value : sum) value /= count;
  Round(sum, out);
  return squares / (2 * count);
}

// -------------------------------------------------------------- Logistic ----

Logistic::Logistic(std::vector<double> a, std::vector<double> b, double lambda)
    : a_(std::move(a)),
      b_(std::move(b)),
      lambda_(lambda),
      n_(Columns(a_, b_.size())) {
  DFL_CHECK(lambda >= 0);
  for (const double label : b_) DFL_CHECK(label == 0 || label == 1);
}

double Logistic::Loss(absl::Span<const float> w,
                      absl::Span<const int64_t> batch) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n_);
  double sum = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    const double z = Dot(&a_[static_cast<size_t>(row * n_)], w);
    sum += SoftPlus(z) - b_[static_cast<size_t>(row)] * z;
  });
  return sum / count + lambda_ / 2 * SquaredNorm(w);
}

double Logistic::Gradient(absl::Span<const float> w,
                          absl::Span<const int64_t> batch,
                          absl::Span<float> out) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n_ && out.size() == w.size());
  std::vector<double> sum(w.size(), 0.0);
  double loss = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    const double* a = &a_[static_cast<size_t>(row * n_)];
    const double label = b_[static_cast<size_t>(row)];
    const double z = Dot(a, w);
    loss += SoftPlus(z) - label * z;
    const double r = Sigmoid(z) - label;
    for (size_t l = 0; l < sum.size(); ++l) sum[l] += r * a[l];
  });
  const double penalty = lambda_ / 2 * SquaredNorm(w);
  for (size_t l = 0; l < sum.size(); ++l) {
    sum[l] = sum[l] / count + lambda_ * w[l];
  }
  Round(sum, out);
  return loss / count + penalty;
}

// --------------------------------------------------------------- Softmax ----

Softmax::Softmax(std::vector<double> x, std::vector<int64_t> labels,
                 int64_t classes)
    : x_(std::move(x)),
      labels_(std::move(labels)),
      classes_(classes),
      d_(Columns(x_, labels_.size())) {
  DFL_CHECK(classes >= 1);
  for (const int64_t label : labels_) DFL_CHECK(label >= 0 && label < classes);
}

double Softmax::Probabilities(absl::Span<const float> w, int64_t row,
                              absl::Span<double> out) const {
  const double* x = &x_[static_cast<size_t>(row * d_)];
  const auto d = static_cast<size_t>(d_);
  const auto classes = static_cast<size_t>(classes_);
  double largest = 0;
  for (size_t c = 0; c < classes; ++c) {
    out[c] = Dot(x, w.subspan(c * d, d)) + w[classes * d + c];
    largest = c == 0 ? out[c] : std::max(largest, out[c]);
  }
  const auto label = static_cast<size_t>(labels_[static_cast<size_t>(row)]);
  const double own = out[label] - largest;
  double sum = 0;
  for (size_t c = 0; c < classes; ++c) {
    out[c] = Exp(out[c] - largest);
    sum += out[c];
  }
  for (size_t c = 0; c < classes; ++c) out[c] /= sum;
  return Log(sum) - own;
}

void Softmax::Predict(absl::Span<const float> w, int64_t row,
                      absl::Span<double> out) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n() && row >= 0 && row < rows() &&
            static_cast<int64_t>(out.size()) == classes_);
  Probabilities(w, row, out);
}

double Softmax::Loss(absl::Span<const float> w,
                     absl::Span<const int64_t> batch) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n());
  std::vector<double> p(static_cast<size_t>(classes_));
  double sum = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    sum += Probabilities(w, row, absl::MakeSpan(p));
  });
  return sum / count;
}

double Softmax::Gradient(absl::Span<const float> w,
                         absl::Span<const int64_t> batch,
                         absl::Span<float> out) const {
  DFL_CHECK(static_cast<int64_t>(w.size()) == n() && out.size() == w.size());
  const auto d = static_cast<size_t>(d_);
  const auto classes = static_cast<size_t>(classes_);
  std::vector<double> p(classes);
  std::vector<double> sum(w.size(), 0.0);
  double loss = 0;
  const double count = ForEachRow(rows(), batch, [&](int64_t row) {
    loss += Probabilities(w, row, absl::MakeSpan(p));
    p[static_cast<size_t>(labels_[static_cast<size_t>(row)])] -= 1;
    const double* x = &x_[static_cast<size_t>(row * d_)];
    for (size_t c = 0; c < classes; ++c) {
      for (size_t l = 0; l < d; ++l) sum[c * d + l] += p[c] * x[l];
      sum[classes * d + c] += p[c];
    }
  });
  for (double& value : sum) value /= count;
  Round(sum, out);
  return loss / count;
}

// ------------------------------------------------------------ generators ----

ProblemSet LinearRegressionExample(const ExampleSpec& spec) {
  CheckSpec(spec);
  ProblemSet set;
  set.truth = SparseTruth(spec.seed, spec.n, NonZeros(0.01, spec.n));
  for (int64_t node = 0; node < spec.nodes; ++node) {
    auto [a, b] = DrawData(spec, node, set.truth, [](Rng& rng, double inner) {
      return inner + 0.5 * Normal(rng);
    });
    set.nodes.push_back(
        std::make_unique<LeastSquares>(std::move(a), std::move(b)));
  }
  return set;
}

ProblemSet LogisticRegressionExample(const ExampleSpec& spec) {
  CheckSpec(spec);
  ProblemSet set;
  set.truth = SparseTruth(spec.seed, spec.n, NonZeros(0.5, spec.n));
  for (int64_t node = 0; node < spec.nodes; ++node) {
    auto [a, b] = DrawData(spec, node, set.truth, [](Rng& rng, double inner) {
      return rng.Bernoulli(Sigmoid(inner)) ? 1.0 : 0.0;
    });
    set.nodes.push_back(
        std::make_unique<Logistic>(std::move(a), std::move(b), 0.001));
  }
  return set;
}

namespace {

constexpr double kCentreNorm = 3;

// [classes x features]
std::vector<double> Centres(const SoftmaxSpec& spec) {
  Rng rng(DeriveSeed(spec.seed, "softmax centres"));
  const auto d = static_cast<size_t>(spec.features);
  std::vector<double> centres;
  centres.reserve(static_cast<size_t>(spec.classes) * d);
  for (int64_t c = 0; c < spec.classes; ++c) {
    double squares = 0;
    for (size_t l = 0; l < d; ++l) {
      centres.push_back(Normal(rng));
      squares += centres.back() * centres.back();
    }
    const double scale = kCentreNorm / std::sqrt(squares);
    for (size_t l = 0; l < d; ++l) centres[centres.size() - d + l] *= scale;
  }
  return centres;
}

// Dir(skew, ..., skew), or equal shares.
std::vector<double> LabelShares(const SoftmaxSpec& spec, Rng& rng) {
  const auto classes = static_cast<size_t>(spec.classes);
  std::vector<double> shares(classes, 1 / static_cast<double>(spec.classes));
  if (spec.skew == 0) return shares;
  double sum = 0;
  for (double& share : shares) {
    share = Gamma(rng, spec.skew);
    sum += share;
  }
  // So small a skew that all underflowed: one class.
  if (sum == 0) {
    shares[rng.Below(classes)] = sum = 1;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

struct LabelledRows {
  std::vector<double> x;
  std::vector<int64_t> labels;
};

LabelledRows DrawRows(const SoftmaxSpec& spec, int64_t rows,
                      const std::vector<double>& centres,
                      const std::vector<double>& shares, Rng& rng) {
  const auto d = static_cast<size_t>(spec.features);
  LabelledRows out;
  out.x.reserve(static_cast<size_t>(rows) * d);
  for (int64_t row = 0; row < rows; ++row) {
    double left = rng.Uniform();
    size_t label = 0;
    while (label + 1 < shares.size() && left >= shares[label]) {
      left -= shares[label++];
    }
    out.labels.push_back(static_cast<int64_t>(label));
    for (size_t l = 0; l < d; ++l) {
      out.x.push_back(centres[label * d + l] + Normal(rng));
    }
  }
  return out;
}

}  // namespace

SoftmaxSet SoftmaxExample(const SoftmaxSpec& spec) {
  DFL_CHECK(spec.nodes >= 1 && spec.features >= 1 && spec.classes >= 2 &&
            spec.rows_per_node >= 1 && spec.test_rows >= 1 && spec.skew >= 0);
  const std::vector<double> centres = Centres(spec);
  SoftmaxSet set;
  for (int64_t node = 0; node < spec.nodes; ++node) {
    Rng rng(DeriveSeed(spec.seed, "softmax data", static_cast<uint64_t>(node)));
    const std::vector<double> shares = LabelShares(spec, rng);
    LabelledRows rows =
        DrawRows(spec, spec.rows_per_node, centres, shares, rng);
    if (std::find(spec.flipped.begin(), spec.flipped.end(), node) !=
        spec.flipped.end()) {
      for (int64_t& label : rows.labels) label = spec.classes - 1 - label;
    }
    set.nodes.push_back(std::make_unique<Softmax>(
        std::move(rows.x), std::move(rows.labels), spec.classes));
  }
  Rng rng(DeriveSeed(spec.seed, "softmax test"));
  SoftmaxSpec even = spec;
  even.skew = 0;
  LabelledRows rows =
      DrawRows(spec, spec.test_rows, centres, LabelShares(even, rng), rng);
  set.test_labels = rows.labels;
  set.test = std::make_unique<Softmax>(std::move(rows.x),
                                       std::move(rows.labels), spec.classes);
  return set;
}

}  // namespace dfl::simports
