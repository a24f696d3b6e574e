#include "tests/golden/table_checks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/rounds/prox.h"
#include "daemon/core/vector/flat_vector.h"
#include "gtest/gtest.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// These functions compute in double.
constexpr double kExact = 1e-9;

// ---------------------------------------------------------------- PaME ----

void CheckPartialMean(const json& table) {
  std::vector<std::unique_ptr<core::RemoteVector>> owned;
  std::vector<core::RemoteVector*> messages;
  const size_t n = table.at("own").size();
  std::vector<int64_t> count(n, 0);
  for (const json& message : table.at("messages")) {
    auto coords = message.at("coords").get<std::vector<int64_t>>();
    auto values = message.at("values").get<std::vector<float>>();
    ASSERT_EQ(coords.size(), values.size());
    for (size_t q = 0; q < coords.size(); ++q) {
      ++count.at(coords[q]);
      // What they were taken from is told in one case.
      if (message.contains("w")) {
        EXPECT_EQ(message.at("w").at(coords[q]), message.at("values").at(q));
      }
    }
    owned.push_back(std::make_unique<core::PlainRemoteVector>(
        static_cast<int64_t>(n), std::move(coords), std::move(values)));
    messages.push_back(owned.back().get());
  }
  auto own = table.at("own").get<std::vector<float>>();
  core::PartialMean(messages, absl::MakeSpan(own));
  EXPECT_EQ(Difference("result", own, table.at("result")), "");
  EXPECT_EQ(json(count), table.value("count", json(count)));
}

// ---------------------------------------------------------------- prox ----

void CheckProxTable(const json& table) {
  core::KnobValues values;
  AddProxKnobs(table.at("prox"), values);
  const auto knobs = core::Knobs::Resolve(core::ProxKnobs(), values);
  ASSERT_TRUE(knobs.ok()) << knobs.status();
  const core::Prox prox = core::ProxOf(*knobs);
  const double alpha = table.at("alpha");
  EXPECT_TRUE(core::CheckProx(prox, alpha).ok());
  const json& grid = table.at("v");
  ASSERT_FALSE(grid.empty());
  ASSERT_EQ(table.at("result").size(), grid.size());
  ASSERT_EQ(table.at("h").size(), grid.size());
  for (size_t q = 0; q < grid.size(); ++q) {
    const double v = grid.at(q);
    EXPECT_NEAR(core::ProximalPoint(prox, alpha, v),
                table.at("result").at(q).get<double>(), kExact)
        << "v = " << v;
    EXPECT_NEAR(core::PenaltyOf(prox, v), table.at("h").at(q).get<double>(),
                kExact)
        << "v = " << v;
  }
}

// -------------------------------------------------------------- mixing ----

void ExpectMatrix(const char* name, const core::MixingMatrix& got,
                  const json& recorded) {
  SCOPED_TRACE(name);
  const auto want = recorded.get<core::MixingMatrix>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(want[i].size(), got.size());
    for (size_t j = 0; j < got.size(); ++j) {
      EXPECT_NEAR(got[i][j], want[i][j], kExact) << i << " " << j;
    }
  }
}

// `lambda` and 1 - lambda as they are recorded.
void ExpectGap(const json& table, const std::string& suffix, double lambda) {
  EXPECT_NEAR(lambda, table.at("lambda" + suffix).get<double>(), kExact);
  EXPECT_NEAR(1 - lambda, table.at("gap" + suffix).get<double>(), kExact);
}

void CheckDirectedTable(const json& table) {
  const auto m = table.at("m").get<int64_t>();
  core::Digraph graph(m);
  for (const json& arc : table.at("edges")) {
    const auto from = arc.at(0).get<int64_t>();
    const auto to = arc.at(1).get<int64_t>();
    ASSERT_TRUE(std::min(from, to) >= 0 && std::max(from, to) < m) << arc;
    graph.AddArc(from, to);
  }
  EXPECT_EQ(table.at("rule"), "directed");
  const core::DirectedWeights weights = core::BuildDirectedWeights(graph);
  ExpectMatrix("A", weights.a, table.at("A"));
  ExpectMatrix("B", weights.b, table.at("B"));
  for (int64_t i = 0; i < m; ++i) {
    EXPECT_NEAR(core::RowSums(weights.a)[i], 1, 1e-12);
    EXPECT_NEAR(core::ColumnSums(weights.b)[i], 1, 1e-12);
  }
  ExpectGap(table, "_A", core::SecondLargestModulus(weights.a));
  ExpectGap(table, "_B", core::SecondLargestModulus(weights.b));
}

// PaME's mixing with nu = p = 1: the plain average of the neighbours.
core::MixingMatrix PullMatrix(const core::Graph& graph) {
  const int64_t m = graph.size();
  core::MixingMatrix matrix(m, std::vector<double>(m, 0.0));
  for (int64_t i = 0; i < m; ++i) {
    for (const int64_t j : graph.neighbours(i)) {
      matrix[i][j] = 1 / static_cast<double>(graph.degree(i));
    }
  }
  return matrix;
}

void CheckMixingTable(const json& table) {
  if (table.at("directed").get<bool>()) return CheckDirectedTable(table);
  const auto rule = table.at("rule").get<std::string>();
  const core::Graph graph =
      MakeGraph(table.at("m").get<int64_t>(), table.at("edges"));
  if (rule == "pull") {
    // Not a mixing rule of ours: it is not doubly stochastic.
    const core::MixingMatrix matrix = PullMatrix(graph);
    ExpectMatrix("W", matrix, table.at("W"));
    ExpectGap(table, "", core::SecondSingularValue(matrix));
    return;
  }
  const absl::StatusOr<core::MixingMatrix> w = core::BuildMixing(rule, graph);
  ASSERT_TRUE(w.ok()) << w.status();
  ExpectMatrix("W", *w, table.at("W"));
  // Doubly stochastic and symmetric, by the naive definition.
  for (size_t i = 0; i < w->size(); ++i) {
    EXPECT_NEAR(core::RowSums(*w)[i], 1, 1e-12);
    for (size_t j = 0; j < w->size(); ++j) {
      EXPECT_GE((*w)[i][j], 0);
      EXPECT_EQ((*w)[i][j], (*w)[j][i]);
    }
  }
  ExpectGap(table, "", core::SecondSingularValue(*w));
  EXPECT_NEAR(core::SpectralGap(*w), table.at("gap").get<double>(), kExact);
}

}  // namespace

void CheckTables(const Case& golden) {
  const std::string algorithm = golden.algorithm();
  // One table may stand by itself.
  if (algorithm == "pme" && !golden.contains("tables")) {
    return CheckPartialMean(golden.document());
  }
  const json& tables = golden.at("tables");
  ASSERT_FALSE(tables.empty());
  for (size_t q = 0; q < tables.size(); ++q) {
    SCOPED_TRACE(absl::StrCat("table ", q));
    if (algorithm == "pme") {
      CheckPartialMean(tables.at(q));
    } else if (algorithm == "prox") {
      CheckProxTable(tables.at(q));
    } else if (algorithm == "mixing") {
      CheckMixingTable(tables.at(q));
    } else if (algorithm == "mod") {
      CheckModTable(tables.at(q));
    } else {
      FAIL() << "no check for tables of \"" << algorithm << "\"";
    }
  }
}

}  // namespace dfl::golden
