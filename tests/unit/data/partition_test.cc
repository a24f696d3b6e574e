#include "daemon/data/partition.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::data {
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
      spec.kind = "quantity";
      for (const double theta : {1e-300, 0.05, 1.0, 1e12}) {
        spec.theta = theta;
        ExpectEveryRowOnce(AllParts(spec, labels, kClasses), kRows);
      }
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
  for (const char* kind : {"iid", "quantity", "dirichlet", "classes"}) {
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

// [DeceFL] supplement, Table 3: 4 nodes with 10 %, 10 %, 20 % and 40 % of the
// rows, mixed 1:99, 99:1, 3:7 and 6:4.
PartitionSpec Table3() {
  PartitionSpec spec = Spec("explicit", 4);
  spec.sizes = {0.1, 0.1, 0.2, 0.4};
  spec.ratios = {{1, 99}, {99, 1}, {3, 7}, {6, 4}};
  return spec;
}

TEST(ExplicitPartition, GivesSizesAndRatiosOfTable3) {
  constexpr int64_t kRows = 2000;
  const std::vector<int64_t> labels = Labels(kRows, 2);  // half and half
  const auto parts = AllParts(Table3(), labels, 2);
  const std::vector<std::pair<int64_t, int64_t>> expected = {
      {2, 198}, {198, 2}, {120, 280}, {480, 320}};
  std::set<int64_t> seen;
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t zeros = 0;
    for (const int64_t row : parts[i]) {
      if (labels[static_cast<size_t>(row)] == 0) ++zeros;
      EXPECT_TRUE(seen.insert(row).second) << row;
    }
    EXPECT_EQ(zeros, expected[i].first) << i;
    EXPECT_EQ(static_cast<int64_t>(parts[i].size()) - zeros, expected[i].second)
        << i;
  }
  EXPECT_EQ(seen.size(), 1600u);  // the paper tests on the other 20 %
  EXPECT_EQ(parts, AllParts(Table3(), labels, 2));
  PartitionSpec other = Table3();
  other.seed = 2;
  EXPECT_NE(parts, AllParts(other, labels, 2));
}

TEST(ExplicitPartition, TakesEveryRowWhenThePartsWantAll) {
  PartitionSpec spec = Spec("explicit", 3);
  spec.sizes = {0.2, 0.3, 0.5};
  const std::vector<int64_t> labels = Labels(1001, 10);
  ExpectEveryRowOnce(AllParts(spec, labels, 10), 1001);
  EXPECT_EQ(AllParts(spec, labels, 10)[0].size(), 200u);
  // Without ratios labels do not matter.
  EXPECT_TRUE(Partition(spec, labels, 0).ok());
  spec.ratios.assign(3, std::vector<double>(10, 7.0));
  ExpectEveryRowOnce(AllParts(spec, Labels(1000, 10), 10), 1000);
}

TEST(ExplicitPartition, SaysWhichClassDoesNotReach) {
  PartitionSpec spec = Table3();
  spec.ratios[3] = {9, 1};
  const absl::Status status = Partition(spec, Labels(2000, 2), 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(StartsWith("partition.ratios: the parts want 1040 rows of "
                       "class 0"),
            HasSubstr("of 2000 rows only 1000"), HasSubstr("lower sizes")));
  spec = Table3();
  spec.sizes[2] = 0;
  spec.index = 2;
  EXPECT_THAT(
      std::string(Partition(spec, Labels(2000, 2), 2).status().message()),
      HasSubstr("raise sizes[2]"));
}

TEST(QuantityPartition, SkewsSizesAndNotClasses) {
  constexpr int64_t kRows = 20000;
  const std::vector<int64_t> labels = Labels(kRows, 10);
  PartitionSpec spec = Spec("quantity", 8);
  const auto ratio = [&] {
    size_t least = kRows;
    size_t most = 0;
    for (const auto& part : AllParts(spec, labels, 10)) {
      least = std::min(least, part.size());
      most = std::max(most, part.size());
    }
    return static_cast<double>(most) / static_cast<double>(least + 1);
  };
  spec.theta = 1e6;
  EXPECT_LT(ratio(), 1.05);
  spec.theta = 0.5;
  EXPECT_GT(ratio(), 3);
  // The largest part has the mixture of the whole.
  auto parts = AllParts(spec, labels, 10);
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<int64_t> counts(10, 0);
  for (const int64_t row : parts[0]) ++counts[labels[row]];
  for (const int64_t count : counts) {
    EXPECT_NEAR(count / static_cast<double>(parts[0].size()), 0.1, 0.03);
  }
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
  cases.push_back({Spec("dirichlet", 4), 0, "partition.kind: \"dirichlet\"",
                   "none, iid, quantity, explicit without ratios"});
  cases.push_back(
      {Spec("classes", 4), 10, "partition.classes_per_node: 11", "[1, 10]"});
  cases.back().spec.classes_per_node = 11;
  cases.push_back(
      {Spec("classes", 4), 10, "partition.classes_per_node: 2", ">= 3"});
  cases.push_back({Spec("quantity", 4), 0, "partition.theta: 0", "number > 0"});
  cases.back().spec.theta = 0;
  cases.push_back({Spec("explicit", 4), 2, "partition.sizes: 0 numbers",
                   "each of the 4 parts"});
  const auto spoilt = [&cases](auto spoil, const std::string& start,
                               const std::string& allowed,
                               int64_t classes = 2) {
    cases.push_back({Table3(), classes, start, allowed});
    spoil(cases.back().spec);
  };
  spoilt([](PartitionSpec& s) { s.sizes[1] = -0.1; },
         "partition.sizes[1]: -0.1", ">= 0");
  spoilt([](PartitionSpec& s) { s.sizes[1] = 0.9; },
         "partition.sizes: they sum to 1.6", "at most 1");
  spoilt([](PartitionSpec& s) { s.ratios.pop_back(); },
         "partition.ratios: 3 of them", "each of the 4 parts");
  spoilt([](PartitionSpec& s) { s.ratios[2][0] = -1; },
         "partition.ratios[2]: -1", ">= 0");
  spoilt([](PartitionSpec& s) { s.ratios[2] = {0, 0}; },
         "partition.ratios[2]: no class", "above 0");
  spoilt([](PartitionSpec&) {}, "partition.ratios[0]: 2 numbers",
         "each of the 3 classes", 3);
  spoilt([](PartitionSpec&) {}, "partition.kind: \"explicit\"",
         "explicit without ratios", 0);
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
}  // namespace dfl::data
