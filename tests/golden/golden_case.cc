#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"

namespace dfl::golden {

using nlohmann::json;

bool Close(double a, double b) {
  return std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(b));
}

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

namespace {

json ReadDocument(const std::string& path) {
  std::ifstream in(path);
  Require(in.good(), path + " cannot be read");
  return json::parse(in);
}

}  // namespace

Case::Case(const std::string& path) : Case(ReadDocument(path)) {}

Case::Case(json document) : document_(std::move(document)) {
  if (!contains("trajectory")) return;
  for (const json& entry : at("trajectory")) states_.emplace_back(entry);
}

const State* Case::StateAfter(int64_t k) const {
  for (const State& state : states_) {
    if (state.k() == k) return &state;
  }
  return nullptr;
}

namespace {

// One vector for all nodes together, not a row for each.
bool IsOfAll(const std::string& field) {
  return absl::StartsWith(field, "sum_") || absl::EndsWith(field, "_in_flight");
}

// What a state tells: the models, their sum, or a message.
bool SaysSomething(const State& state) {
  return state.contains("x") || state.contains("sum_x") ||
         state.contains("offer");
}

}  // namespace

std::vector<std::string> Case::Uncompared() const {
  std::vector<std::string> left;
  if (contains("schedule") && states_.empty()) left.push_back("no state");
  for (const State& state : states_) {
    const std::string when = absl::StrCat(" after step ", state.k());
    if (!SaysSomething(state)) left.push_back("no x" + when);
    for (const auto& [field, value] : state.entry_.items()) {
      if (field == "k") continue;
      if (state.asked_.count(field) == 0) {
        left.push_back(field + when);
      } else if (value.is_array() &&
                 value.size() != at(IsOfAll(field) ? "n" : "m")) {
        left.push_back(absl::StrCat(value.size(), " rows of ", field, when));
      }
    }
  }
  if (!contains("record")) return left;
  for (const json& k : at("record")) {
    if (StateAfter(k.get<int64_t>()) == nullptr) {
      left.push_back("no state after step " + k.dump());
    }
  }
  return left;
}

namespace {

// A matrix as one row-major vector.
std::vector<double> Flatten(const json& rows) {
  std::vector<double> flat;
  for (const json& row : rows) {
    for (const json& value : row) flat.push_back(value.get<double>());
  }
  return flat;
}

}  // namespace

std::vector<std::unique_ptr<simports::Problem>> MakeProblems(
    const json& problem) {
  const std::string type = problem.at("type");
  std::vector<std::unique_ptr<simports::Problem>> problems;
  for (const json& node : problem.at("nodes")) {
    if (type == "softmax") {
      problems.push_back(std::make_unique<simports::Softmax>(
          Flatten(node.at("X")), node.at("labels").get<std::vector<int64_t>>(),
          problem.at("classes").get<int64_t>()));
      continue;
    }
    std::vector<double> a = Flatten(node.at("A"));
    std::vector<double> b = node.at("b").get<std::vector<double>>();
    if (type == "least_squares") {
      problems.push_back(
          std::make_unique<simports::LeastSquares>(std::move(a), std::move(b)));
    } else {
      Require(type == "logistic", type + ": no such problem");
      problems.push_back(std::make_unique<simports::Logistic>(
          std::move(a), std::move(b), problem.at("lambda").get<double>()));
    }
  }
  return problems;
}

void CheckProblems(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems) {
  const json& check = golden.at("check_x0");
  ASSERT_EQ(problems.size(), golden.at("m").get<size_t>());
  ASSERT_EQ(golden.at("x0").size(), problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("check_x0, node ", i));
    EXPECT_EQ(problems[i]->n(), golden.at("n").get<int64_t>());
    const json& loss = check.at("loss").at(i);
    const json& grad = check.at("grad").at(i);
    // A node that joins later is checked at 0.
    std::vector<float> x0(problems[i]->n(), 0.0F);
    const json& own = golden.at("x0").at(i);
    if (!own.is_null()) x0 = own.get<std::vector<float>>();
    ASSERT_EQ(static_cast<int64_t>(x0.size()), problems[i]->n());
    EXPECT_TRUE(Close(problems[i]->Loss(x0), loss)) << loss;
    std::vector<float> gradient(x0.size());
    problems[i]->Gradient(x0, {}, absl::MakeSpan(gradient));
    EXPECT_EQ(Difference("gradient", gradient, grad), "");
  }
}

core::Graph MakeGraph(int64_t m, const json& edges) {
  core::Graph graph(m);
  for (const json& edge : edges) {
    const auto a = edge.at(0).get<int64_t>();
    const auto b = edge.at(1).get<int64_t>();
    const bool valid = std::min(a, b) >= 0 && std::max(a, b) < m;
    EXPECT_TRUE(valid) << edge;
    if (valid) graph.AddEdge(a, b);
  }
  return graph;
}

namespace {

enum class Sums { kRows, kColumns, kBoth };

// Sums of 1, or of 0 for a node that is absent, and weight on edges only.
void CheckMatrix(const json& matrix, int64_t m, const json& edges, Sums sums) {
  const auto w = matrix.get<core::MixingMatrix>();
  ASSERT_EQ(static_cast<int64_t>(w.size()), m);
  for (const auto& row : w) ASSERT_EQ(row.size(), w.size());
  const core::Graph graph = MakeGraph(m, edges);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      if (i != j && w[i][j] != 0) {
        EXPECT_TRUE(graph.HasEdge(i, j)) << "[" << i << "][" << j << "]";
      }
    }
  }
  const auto check = [](const std::vector<double>& of) {
    for (const double sum : of) {
      EXPECT_TRUE(sum == 0 || std::fabs(sum - 1) <= 1e-6) << sum;
    }
  };
  if (sums != Sums::kColumns) check(core::RowSums(w));
  if (sums != Sums::kRows) check(core::ColumnSums(w));
}

}  // namespace

void CheckMatrices(const Case& golden) {
  const auto m = golden.at("m").get<int64_t>();
  const json& edges = golden.at("graph").at("edges");
  for (const auto& [name, sums] : {std::pair{"W", Sums::kBoth},
                                   {"A", Sums::kRows},
                                   {"B", Sums::kColumns}}) {
    if (!golden.contains(name) || golden.at(name).is_null()) continue;
    SCOPED_TRACE(name);
    CheckMatrix(golden.at(name), m, edges, sums);
  }
  if (!golden.contains("Ws")) return;
  for (size_t q = 0; q < golden.at("Ws").size(); ++q) {
    SCOPED_TRACE(absl::StrCat("Ws[", q, "]"));
    CheckMatrix(golden.at("Ws").at(q), m, golden.at("edge_sets").at(q),
                Sums::kBoth);
  }
}

NodeId NodeName(int64_t index) {
  return NodeId(absl::StrFormat("node-%03d", index));
}

int64_t NodeIndex(const NodeId& node) {
  int64_t index = -1;
  Require(absl::SimpleAtoi(node.name().substr(5), &index), node.name());
  return index;
}

std::vector<int64_t> ReadBatch(const json& batch) {
  if (batch.is_null()) return {};
  return batch.get<std::vector<int64_t>>();
}

std::vector<int64_t> RowsOf(const json& batch,
                            const simports::Problem& problem) {
  std::vector<int64_t> rows = ReadBatch(batch);
  if (!batch.is_null()) return rows;
  rows.resize(problem.rows());
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

std::string Difference(const std::string& what, absl::Span<const float> got,
                       const json& want) {
  if (!want.is_array() || got.size() != want.size()) {
    return absl::StrCat(what, ": ", got.size(), " values, not ", want.dump());
  }
  for (size_t l = 0; l < got.size(); ++l) {
    const double wanted = want[l].get<double>();
    if (!Close(got[l], wanted)) {
      return absl::StrCat(what, "[", l, "] = ", got[l], ", not ", wanted);
    }
  }
  return "";
}

void ExpectRow(const State& want, const std::string& field, size_t i,
               absl::Span<const float> got) {
  if (!want.contains(field)) return;
  EXPECT_EQ(Difference(field, got, want.at(field).at(i)), "")
      << "after step " << want.k() << ", node " << i;
}

void ExpectValue(const State& want, const std::string& field, size_t i,
                 double got) {
  if (!want.contains(field)) return;
  const json& value = want.at(field).at(i);
  EXPECT_TRUE(value.is_number() && Close(got, value.get<double>()))
      << field << " = " << got << ", not " << value << ", after step "
      << want.k() << ", node " << i;
}

}  // namespace dfl::golden
