#include "daemon/core/partition.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/knobs.h"

namespace dfl::core {
namespace {

using Rows = std::vector<int64_t>;

absl::Status Bad(absl::string_view key, absl::string_view found,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("partition.", key, ": ", found, allowed));
}

absl::Status CheckParameters(const PartitionSpec& spec, int64_t classes) {
  if (spec.count < 1) {
    return Bad("count", absl::StrCat(spec.count),
               " is not allowed; allowed: integer >= 1");
  }
  if (spec.index < 0 || spec.index >= spec.count) {
    return Bad("index", absl::StrCat(spec.index),
               absl::StrCat(" is not allowed; allowed: integer in [0, ",
                            spec.count - 1, "] since count is ", spec.count));
  }
  if (spec.kind == "none") {
    if (spec.count == 1) return absl::OkStatus();
    return Bad("count", absl::StrCat(spec.count),
               " parts, but kind none gives all rows to one; use kind iid, "
               "dirichlet or classes, or count 1");
  }
  if (spec.kind == "iid") return absl::OkStatus();
  if (spec.kind != "dirichlet" && spec.kind != "classes") {
    return UnknownNameError("partition.kind", spec.kind,
                            {"none", "iid", "dirichlet", "classes"});
  }
  if (classes < 1) {
    return Bad("kind", absl::StrCat("\"", spec.kind, "\""),
               " needs class labels, but this data has none; allowed here: "
               "none, iid");
  }
  if (spec.kind == "dirichlet") {
    if (std::isfinite(spec.theta) && spec.theta > 0) return absl::OkStatus();
    return Bad("theta", ToString(spec.theta),
               " is not allowed; allowed: number > 0");
  }
  if (spec.classes_per_node < 1 || spec.classes_per_node > classes) {
    return Bad("classes_per_node", absl::StrCat(spec.classes_per_node),
               absl::StrCat(" is not allowed; allowed: integer in [1, ",
                            classes, "], the number of classes"));
  }
  // ceil(classes / classes_per_node) parts are needed to hold every class.
  const int64_t needed =
      (classes + spec.classes_per_node - 1) / spec.classes_per_node;
  if (spec.count < needed) {
    return Bad("classes_per_node", absl::StrCat(spec.classes_per_node),
               absl::StrCat(" for ", spec.count, " parts leaves some of the ",
                            classes, " classes to nobody; allowed: >= ",
                            (classes + spec.count - 1) / spec.count));
  }
  return absl::OkStatus();
}

// Where part `index` of `parts` equal ones begins in `rows` rows.
int64_t EqualCut(int64_t rows, int64_t parts, int64_t index) {
  return rows / parts * index + std::min(index, rows % parts);
}

Rows ShuffledRows(uint64_t seed, Rows rows) {
  Rng rng(seed);
  rng.Shuffle(absl::MakeSpan(rows));
  return rows;
}

// The rows of each class, shuffled by (seed, class).
std::vector<Rows> RowsByClass(uint64_t seed, absl::Span<const int64_t> labels,
                              int64_t classes) {
  std::vector<Rows> by_class(static_cast<size_t>(classes));
  for (size_t row = 0; row < labels.size(); ++row) {
    by_class[static_cast<size_t>(labels[row])].push_back(
        static_cast<int64_t>(row));
  }
  for (size_t k = 0; k < by_class.size(); ++k) {
    by_class[k] = ShuffledRows(DeriveSeed(seed, "partition rows", k),
                               std::move(by_class[k]));
  }
  return by_class;
}

// p ~ Dir(theta, ..., theta) as its cumulated sums, the last one 1. Gamma
// draws are kept as logarithms (Gamma(theta) = Gamma(theta + 1) U^(1/theta))
// and scaled by the largest, so that a tiny theta gives (nearly) one 1 and not
// 0/0.
std::vector<double> CumulatedDirichlet(Rng& rng, double theta, int64_t parts) {
  // Below this p is one-hot in double anyway, and 1/theta must stay finite.
  const double shape = std::max(theta, 1e-9);
  std::vector<double> values;
  double largest = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const double log_gamma =
        Log(Gamma(rng, shape + 1)) + Log(1 - rng.Uniform()) / shape;
    largest = part == 0 ? log_gamma : std::max(largest, log_gamma);
    values.push_back(log_gamma);
  }
  double sum = 0;
  for (double& value : values) {
    sum += Exp(value - largest);
    value = sum;
  }
  for (double& value : values) value /= sum;
  values.back() = 1;
  return values;
}

void Append(Rows& out, const Rows& rows, int64_t begin, int64_t end) {
  out.insert(out.end(), rows.begin() + begin, rows.begin() + end);
}

Rows Iid(const PartitionSpec& spec, int64_t rows) {
  Rows all(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) all[static_cast<size_t>(row)] = row;
  all = ShuffledRows(DeriveSeed(spec.seed, "partition iid"), std::move(all));
  Rows part;
  Append(part, all, EqualCut(rows, spec.count, spec.index),
         EqualCut(rows, spec.count, spec.index + 1));
  return part;
}

Rows Dirichlet(const PartitionSpec& spec, const std::vector<Rows>& by_class) {
  Rows part;
  for (size_t k = 0; k < by_class.size(); ++k) {
    Rng rng(DeriveSeed(spec.seed, "partition dirichlet", k));
    const std::vector<double> cumulated =
        CumulatedDirichlet(rng, spec.theta, spec.count);
    const auto rows = static_cast<double>(by_class[k].size());
    const auto cut = [&](int64_t index) {
      if (index == 0) return int64_t{0};
      return static_cast<int64_t>(
          std::floor(cumulated[static_cast<size_t>(index - 1)] * rows + 0.5));
    };
    Append(part, by_class[k], cut(spec.index), cut(spec.index + 1));
  }
  return part;
}

// Part i holds the classes (i C + j) mod K, j = 0 .. C - 1.
Rows Classes(const PartitionSpec& spec, const std::vector<Rows>& by_class) {
  const auto classes = static_cast<int64_t>(by_class.size());
  const auto holds = [&](int64_t index, int64_t k) {
    const int64_t first = index % classes * spec.classes_per_node % classes;
    return (k - first + classes) % classes < spec.classes_per_node;
  };
  Rows part;
  for (int64_t k = 0; k < classes; ++k) {
    if (!holds(spec.index, k)) continue;
    int64_t holders = 0;
    int64_t place = 0;  // of this part among the holders
    for (int64_t index = 0; index < spec.count; ++index) {
      if (index == spec.index) place = holders;
      if (holds(index, k)) ++holders;
    }
    const Rows& rows = by_class[static_cast<size_t>(k)];
    const auto size = static_cast<int64_t>(rows.size());
    Append(part, rows, EqualCut(size, holders, place),
           EqualCut(size, holders, place + 1));
  }
  return part;
}

std::string EmptyHint(const PartitionSpec& spec) {
  if (spec.kind == "dirichlet") {
    return absl::StrCat("raise theta (", ToString(spec.theta),
                        "), lower count, or take another seed");
  }
  if (spec.kind == "classes") {
    return "raise classes_per_node or lower count";
  }
  if (spec.kind == "iid") return "lower count";
  return "check the data path";
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> Partition(const PartitionSpec& spec,
                                               absl::Span<const int64_t> labels,
                                               int64_t classes) {
  DFL_RETURN_IF_ERROR(CheckParameters(spec, classes));
  const auto rows = static_cast<int64_t>(labels.size());
  Rows part;
  if (spec.kind == "none") {
    for (int64_t row = 0; row < rows; ++row) part.push_back(row);
  } else if (spec.kind == "iid") {
    part = Iid(spec, rows);
  } else {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t label = labels[static_cast<size_t>(row)];
      if (label < 0 || label >= classes) {
        return absl::InvalidArgumentError(
            absl::StrCat("row ", row, ": label ", label, " is not in [0, ",
                         classes - 1, "]; the data has ", classes, " classes"));
      }
    }
    const std::vector<Rows> by_class = RowsByClass(spec.seed, labels, classes);
    part = spec.kind == "dirichlet" ? Dirichlet(spec, by_class)
                                    : Classes(spec, by_class);
  }
  if (part.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("partition: part ", spec.index, " of ", spec.count, " of ",
                     rows, " rows is empty; ", EmptyHint(spec)));
  }
  std::sort(part.begin(), part.end());
  return part;
}

}  // namespace dfl::core
