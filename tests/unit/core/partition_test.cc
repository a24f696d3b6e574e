#include "daemon/core/partition.h"

#include <algorithm>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<int64_t> Labels(int64_t rows, int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < rows; ++row) {
    labels.push_back(row * 7 % classes);
  }
  return labels;
}

// Every part of `spec` over all its indices; empty ones stay empty.
std::vector<std::vector<int64_t>> AllParts(PartitionSpec spec,
                                           absl::Span<const int64_t> labels,
                                           int64_t classes) {
  std::vector<std::vector<int64_t>> parts;
  for (spec.index = 0; spec.index < spec.count; ++spec.index) {
    absl::StatusOr<std::vector<int64_t>> part =
        Partition(spec, labels, classes);
    if (part.ok()) {
      parts.push_back(*std::move(part));
    } else {
      EXPECT_EQ(part.status().code(), absl::StatusCode::kFailedPrecondition)
          << part.status();
      parts.emplace_back();
    }
  }
  return parts;
}

void ExpectEveryRowOnce(const std::vector<std::vector<int64_t>>& parts,
                        int64_t rows) {
  std::vector<int> seen(static_cast<size_t>(rows), 0);
  for (const std::vector<int64_t>& part : parts) {
    EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));
    for (const int64_t row : part) ++seen.at(static_cast<size_t>(row));
  }
  for (const int times : seen) EXPECT_EQ(times, 1);
}

PartitionSpec Spec(const std::string& kind, int64_t count) {
  PartitionSpec spec;
  spec.kind = kind;
  spec.count = count;
  return spec;
}

TEST(Partition, CoversEveryRowExactlyOnce) {
  constexpr int64_t kRows = 1003;
  constexpr int64_t kClasses = 10;
  const std::vector<int64_t> labels = Labels(kRows, kClasses);
  for (const int64_t count : {1, 2, 5, 13, 40}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      PartitionSpec spec = Spec("iid", count);
      spec.seed = seed;
      ExpectEveryRowOnce(AllParts(spec, labels, kClasses), kRows);
      spec.kind = "dirichlet";
      for (const double theta : {1e-300, 1e-4, 0.05, 0.3, 1.0, 100.0, 1e12}) {
        SCOPED_TRACE(testing::Message() << "theta " << theta << ", " << count
                                        << " parts, seed " << seed);
        spec.theta = theta;
        ExpectEveryRowOnce(AllParts(spec, labels, kClasses), kRows);
      }
      spec.kind = "classes";
      for (const int64_t each : {1, 2, 3, 10}) {
        if (each * count < kClasses) continue;
        SCOPED_TRACE(testing::Message() << each << " classes, " << count
                                        << " parts, seed " << seed);
        spec.classes_per_node = each;
        ExpectEveryRowOnce(AllParts(spec, labels, kClasses), kRows);
      }
    }
  }
}

TEST(Partition, NoneGivesEveryRow) {
  const std::vector<int64_t> labels = Labels(5, 2);
  EXPECT_THAT(*Partition(Spec("none", 1), labels, 2),
              testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(Partition, IidPartsDifferByAtMostOneRowAndAreShuffled) {
  const auto parts = AllParts(Spec("iid", 7), Labels(100, 10), 10);
  for (const auto& part : parts) {
    EXPECT_GE(part.size(), 14u);
    EXPECT_LE(part.size(), 15u);
  }
  EXPECT_NE(parts[0].back(), static_cast<int64_t>(parts[0].size()) - 1);
}

TEST(Partition, IidNeedsNoClasses) {
  const std::vector<int64_t> labels(10, 0);
  EXPECT_TRUE(Partition(Spec("iid", 2), labels, 0).ok());
}

TEST(Partition, IsAFunctionOfTheSeed) {
  const std::vector<int64_t> labels = Labels(500, 10);
  for (const char* kind : {"iid", "dirichlet", "classes"}) {
    PartitionSpec spec = Spec(kind, 5);
    spec.classes_per_node = 4;  // each class is shared by two parts
    const auto first = AllParts(spec, labels, 10);
    EXPECT_EQ(first, AllParts(spec, labels, 10)) << kind;
    spec.seed = 2;
    EXPECT_NE(first, AllParts(spec, labels, 10)) << kind;
  }
}

// The largest share that one part has of a class, averaged over the classes.
double MeanLargestShare(const PartitionSpec& spec) {
  constexpr int64_t kRows = 20000;
  constexpr int64_t kClasses = 10;
  const std::vector<int64_t> labels = Labels(kRows, kClasses);
  const auto parts = AllParts(spec, labels, kClasses);
  double sum = 0;
  for (int64_t k = 0; k < kClasses; ++k) {
    double largest = 0;
    for (const auto& part : parts) {
      const auto held = std::count_if(
          part.begin(), part.end(),
          [&](int64_t row) { return labels[static_cast<size_t>(row)] == k; });
      largest = std::max(largest, held * kClasses / double{kRows});
    }
    sum += largest;
  }
  return sum / kClasses;
}

TEST(DirichletPartition, IsMoreSkewedTheSmallerThetaIs) {
  PartitionSpec spec = Spec("dirichlet", 4);
  double skew[3] = {0, 0, 0};
  const double thetas[3] = {0.01, 0.3, 1000};
  constexpr int kSeeds = 20;
  for (int t = 0; t < 3; ++t) {
    spec.theta = thetas[t];
    for (spec.seed = 1; spec.seed <= kSeeds; ++spec.seed) {
      skew[t] += MeanLargestShare(spec) / kSeeds;
    }
  }
  // E max p of Dir(0.3) over four is 0.6955 (another program, 200,000 draws).
  EXPECT_GT(skew[0], 0.97);
  EXPECT_NEAR(skew[1], 0.6955, 0.03);
  EXPECT_NEAR(skew[2], 0.25, 0.02);
}

TEST(ClassesPartition, EachPartHoldsThatManyClassesAndSharesThemEqually) {
  const std::vector<int64_t> labels = Labels(1000, 10);
  PartitionSpec spec = Spec("classes", 10);
  spec.classes_per_node = 2;
  const auto parts = AllParts(spec, labels, 10);
  for (const auto& part : parts) {
    std::set<int64_t> held;
    for (const int64_t row : part) {
      held.insert(labels[static_cast<size_t>(row)]);
    }
    EXPECT_EQ(held.size(), 2u);
    EXPECT_EQ(part.size(), 100u);
  }
}

TEST(Partition, AnEmptyPartSaysWhatToChange) {
  const std::vector<int64_t> labels = Labels(3, 2);
  PartitionSpec spec = Spec("iid", 5);
  spec.index = 4;
  absl::Status status = Partition(spec, labels, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("part 4 of 5 of 3 rows is empty"),
                    HasSubstr("lower count")));
  spec = Spec("dirichlet", 50);
  spec.theta = 0.001;
  int empty = 0;
  for (spec.index = 0; spec.index < 50; ++spec.index) {
    status = Partition(spec, labels, 2).status();
    if (status.ok()) continue;
    ++empty;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("raise theta (0.001)"));
  }
  EXPECT_GE(empty, 47);
}

struct BadCase {
  PartitionSpec spec;
  int64_t classes;
  std::string start;
  std::string allowed;
};

TEST(Partition, RefusesBadParametersWithWhatIsAllowed) {
  std::vector<BadCase> cases;
  cases.push_back({Spec("dirichlt", 2), 10, "partition.kind: \"dirichlt\"",
                   "did you mean \"dirichlet\""});
  cases.push_back({Spec("iid", 0), 10, "partition.count: 0", "integer >= 1"});
  cases.push_back({Spec("iid", 4), 10, "partition.index: 4", "[0, 3]"});
  cases.back().spec.index = 4;
  cases.push_back({Spec("none", 4), 10, "partition.count: 4", "count 1"});
  cases.push_back(
      {Spec("dirichlet", 4), 10, "partition.theta: 0", "number > 0"});
  cases.back().spec.theta = 0;
  cases.push_back(
      {Spec("dirichlet", 4), 0, "partition.kind: \"dirichlet\"", "none, iid"});
  cases.push_back(
      {Spec("classes", 4), 10, "partition.classes_per_node: 11", "[1, 10]"});
  cases.back().spec.classes_per_node = 11;
  cases.push_back(
      {Spec("classes", 4), 10, "partition.classes_per_node: 2", ">= 3"});
  for (const BadCase& c : cases) {
    const absl::Status status =
        Partition(c.spec, Labels(100, 10), c.classes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.start;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith(c.start), HasSubstr(c.allowed)));
  }
}

TEST(Partition, RefusesALabelOutOfRangeWithItsRow) {
  const std::vector<int64_t> labels = {0, 1, 2};
  const absl::Status status =
      Partition(Spec("dirichlet", 1), labels, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("row 2"), HasSubstr("label 2"), HasSubstr("[0, 1]")));
}

}  // namespace
}  // namespace dfl::core
