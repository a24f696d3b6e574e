#include "daemon/data/partition.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/base/names.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::data {
namespace {

using Rows = std::vector<int64_t>;

absl::Status Bad(absl::string_view key, absl::string_view found,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("partition.", key, ": ", found, allowed));
}

absl::Status CheckTheta(double theta) {
  if (std::isfinite(theta) && theta > 0) return absl::OkStatus();
  return Bad("theta", NumberText(theta),
             " is not allowed; allowed: number > 0");
}

bool IsShare(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckExplicit(const PartitionSpec& spec) {
  const auto parts = static_cast<size_t>(spec.count);
  if (spec.sizes.size() != parts) {
    return Bad("sizes", absl::StrCat(spec.sizes.size(), " numbers"),
               absl::StrCat("; allowed: the share of all rows of each of the ",
                            parts, " parts (count)"));
  }
  double sum = 0;
  for (size_t i = 0; i < parts; ++i) {
    if (!IsShare(spec.sizes[i])) {
      return Bad(absl::StrCat("sizes[", i, "]"), NumberText(spec.sizes[i]),
                 " is not allowed; allowed: number >= 0");
    }
    sum += spec.sizes[i];
  }
  if (sum > 1 + 1e-9) {
    return Bad("sizes", absl::StrCat("they sum to ", NumberText(sum)),
               ", more than there is; allowed: at most 1");
  }
  if (!spec.ratios.empty() && spec.ratios.size() != parts) {
    return Bad("ratios", absl::StrCat(spec.ratios.size(), " of them"),
               absl::StrCat("; allowed: one for each of the ", parts,
                            " parts (count), or none"));
  }
  for (size_t i = 0; i < spec.ratios.size(); ++i) {
    double whole = 0;
    for (const double ratio : spec.ratios[i]) {
      if (!IsShare(ratio)) {
        return Bad(absl::StrCat("ratios[", i, "]"), NumberText(ratio),
                   " is not allowed; allowed: numbers >= 0");
      }
      whole += ratio;
    }
    if (whole <= 0) {
      return Bad(absl::StrCat("ratios[", i, "]"), "no class has a share",
                 "; allowed: numbers >= 0, one of them above 0");
    }
  }
  return absl::OkStatus();
}

// CheckPartition, and what needs the number of classes.
absl::Status CheckParameters(const PartitionSpec& spec, int64_t classes) {
  DFL_RETURN_IF_ERROR(CheckPartition(spec));
  if (!SplitsByLabel(spec)) return absl::OkStatus();
  if (classes < 1) {
    return Bad("kind", absl::StrCat("\"", spec.kind, "\""),
               " needs class labels, but this data has none; allowed here: "
               "none, iid, quantity, explicit without ratios");
  }
  if (spec.kind == "explicit") {
    for (size_t i = 0; i < spec.ratios.size(); ++i) {
      if (static_cast<int64_t>(spec.ratios[i].size()) == classes) continue;
      return Bad(
          absl::StrCat("ratios[", i, "]"),
          absl::StrCat(spec.ratios[i].size(), " numbers"),
          absl::StrCat("; allowed: one for each of the ", classes, " classes"));
    }
  }
  if (spec.kind != "classes") return absl::OkStatus();
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

// Every row, shuffled.
Rows AllShuffled(const PartitionSpec& spec, int64_t rows) {
  Rows all(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) all[static_cast<size_t>(row)] = row;
  return ShuffledRows(DeriveSeed(spec.seed, "partition iid"), std::move(all));
}

Rows Iid(const PartitionSpec& spec, int64_t rows) {
  Rows part;
  Append(part, AllShuffled(spec, rows), EqualCut(rows, spec.count, spec.index),
         EqualCut(rows, spec.count, spec.index + 1));
  return part;
}

// Where the part after those of the first `index` cumulated shares begins.
int64_t CutAt(const std::vector<double>& cumulated, int64_t index,
              int64_t rows) {
  if (index == 0) return 0;
  return static_cast<int64_t>(std::floor(
      cumulated[static_cast<size_t>(index - 1)] * static_cast<double>(rows) +
      0.5));
}

// All rows, cut by cumulated shares.
Rows ByShares(const PartitionSpec& spec, const std::vector<double>& cumulated,
              int64_t rows) {
  Rows part;
  Append(part, AllShuffled(spec, rows), CutAt(cumulated, spec.index, rows),
         CutAt(cumulated, spec.index + 1, rows));
  return part;
}

Rows Quantity(const PartitionSpec& spec, int64_t rows) {
  Rng rng(DeriveSeed(spec.seed, "partition quantity"));
  return ByShares(spec, CumulatedDirichlet(rng, spec.theta, spec.count), rows);
}

Rows ExplicitSizes(const PartitionSpec& spec, int64_t rows) {
  std::vector<double> cumulated;
  double sum = 0;
  for (const double size : spec.sizes) {
    sum += size;
    cumulated.push_back(std::min(sum, 1.0));
  }
  return ByShares(spec, cumulated, rows);
}

// Each class is dealt out in the order of the parts.
absl::StatusOr<Rows> ExplicitRatios(const PartitionSpec& spec,
                                    const std::vector<Rows>& by_class,
                                    int64_t rows) {
  Rows part;
  for (size_t k = 0; k < by_class.size(); ++k) {
    std::vector<double> cumulated;  // of all rows
    double sum = 0;
    for (size_t i = 0; i < spec.sizes.size(); ++i) {
      double whole = 0;
      for (const double ratio : spec.ratios[i]) whole += ratio;
      sum += spec.sizes[i] * spec.ratios[i][k] / whole;
      cumulated.push_back(sum);
    }
    const int64_t wanted = CutAt(cumulated, spec.count, rows);
    if (wanted > static_cast<int64_t>(by_class[k].size())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "partition.ratios: the parts want ", wanted, " rows of class ", k,
          ", but of ", rows, " rows only ", by_class[k].size(),
          " are of it; lower sizes, or that class's part in ratios"));
    }
    Append(part, by_class[k], CutAt(cumulated, spec.index, rows),
           CutAt(cumulated, spec.index + 1, rows));
  }
  return part;
}

Rows Dirichlet(const PartitionSpec& spec, const std::vector<Rows>& by_class) {
  Rows part;
  for (size_t k = 0; k < by_class.size(); ++k) {
    Rng rng(DeriveSeed(spec.seed, "partition dirichlet", k));
    const std::vector<double> cumulated =
        CumulatedDirichlet(rng, spec.theta, spec.count);
    const auto rows = static_cast<int64_t>(by_class[k].size());
    Append(part, by_class[k], CutAt(cumulated, spec.index, rows),
           CutAt(cumulated, spec.index + 1, rows));
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
  if (spec.kind == "dirichlet" || spec.kind == "quantity") {
    return absl::StrCat("raise theta (", NumberText(spec.theta),
                        "), lower count, or take another seed");
  }
  if (spec.kind == "classes") {
    return "raise classes_per_node or lower count";
  }
  if (spec.kind == "iid") return "lower count";
  if (spec.kind == "explicit") {
    return absl::StrCat("raise sizes[", spec.index, "]");
  }
  return "check the data path";
}

}  // namespace

bool SplitsByLabel(const PartitionSpec& spec) {
  return spec.kind == "dirichlet" || spec.kind == "classes" ||
         (spec.kind == "explicit" && !spec.ratios.empty());
}

absl::Status CheckPartition(const PartitionSpec& spec) {
  const std::vector<std::string> kinds = {"none",      "iid",     "quantity",
                                          "dirichlet", "classes", "explicit"};
  if (spec.count < 1) {
    return Bad("count", absl::StrCat(spec.count),
               " is not allowed; allowed: integer >= 1");
  }
  if (spec.index < 0 || spec.index >= spec.count) {
    return Bad("index", absl::StrCat(spec.index),
               absl::StrCat(" is not allowed; allowed: integer in [0, ",
                            spec.count - 1, "] since count is ", spec.count));
  }
  if (std::find(kinds.begin(), kinds.end(), spec.kind) == kinds.end()) {
    return UnknownNameError("partition.kind", spec.kind, kinds);
  }
  if (spec.kind == "none" && spec.count != 1) {
    return Bad("count", absl::StrCat(spec.count),
               " parts, but kind none gives all rows to one; use another kind, "
               "or count 1");
  }
  if (spec.kind == "dirichlet" || spec.kind == "quantity") {
    return CheckTheta(spec.theta);
  }
  return spec.kind == "explicit" ? CheckExplicit(spec) : absl::OkStatus();
}

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
  } else if (spec.kind == "quantity") {
    part = Quantity(spec, rows);
  } else if (!SplitsByLabel(spec)) {
    part = ExplicitSizes(spec, rows);
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
    if (spec.kind == "explicit") {
      DFL_ASSIGN_OR_RETURN(part, ExplicitRatios(spec, by_class, rows));
    } else if (spec.kind == "dirichlet") {
      part = Dirichlet(spec, by_class);
    } else {
      part = Classes(spec, by_class);
    }
  }
  if (part.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("partition: part ", spec.index, " of ", spec.count, " of ",
                     rows, " rows is empty; ", EmptyHint(spec)));
  }
  std::sort(part.begin(), part.end());
  return part;
}

}  // namespace dfl::data
