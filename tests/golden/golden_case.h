// One golden vector: a small run with every random or timing decision written
// down, and the states that must come out. The format is told in README.md.
#ifndef DFL_TESTS_GOLDEN_GOLDEN_CASE_H_
#define DFL_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/core/graph/graph.h"
#include "daemon/simports/problems.h"
#include "nlohmann/json.hpp"

namespace dfl::golden {

// |a - b| <= 2e-4 max(1, |b|): what float32 is held to.
inline constexpr double kTolerance = 2e-4;
bool Close(double a, double b);

// Ends the case, and no other, when what it needs does not hold: it throws
// std::invalid_argument, as a key that is not there throws an exception of
// nlohmann::json, and the test framework counts either as the case's failure.
void Require(bool holds, const std::string& what);

// The states on record after one step. It knows which of them were asked for,
// so that none is left uncompared.
class State {
 public:
  explicit State(const nlohmann::json& entry) : entry_(entry) {}

  int64_t k() const { return entry_.at("k").get<int64_t>(); }
  bool contains(const std::string& field) const {
    return entry_.contains(field);
  }
  const nlohmann::json& at(const std::string& field) const {
    asked_.insert(field);
    return entry_.at(field);
  }

 private:
  friend class Case;

  const nlohmann::json& entry_;
  mutable std::set<std::string> asked_;
};

// One file. Every entry of its trajectory must be asked for.
class Case {
 public:
  explicit Case(const std::string& path);
  explicit Case(nlohmann::json document);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  bool contains(const std::string& key) const {
    return document_.contains(key);
  }
  const nlohmann::json& at(const std::string& key) const {
    return document_.at(key);
  }
  const nlohmann::json& document() const { return document_; }
  // "" when it has none.
  std::string algorithm() const { return document_.value("algorithm", ""); }

  // The trajectory's entry of step k; null when it is not recorded.
  const State* StateAfter(int64_t k) const;

  // What is on record and was not asked for, and what is missing there.
  std::vector<std::string> Uncompared() const;

 private:
  nlohmann::json document_;
  std::deque<State> states_;
};

// The problems themselves, before the algorithm: their number, their length and
// check_x0.
void CheckProblems(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems);

// The mixing matrices: sums of 1, and weight on edges only.
void CheckMatrices(const Case& golden);

// f_i of every node.
std::vector<std::unique_ptr<simports::Problem>> MakeProblems(
    const nlohmann::json& problem);

// The graph of undirected edges between m nodes.
core::Graph MakeGraph(int64_t m, const nlohmann::json& edges);

// "node-03": sorts as the index does.
NodeId NodeName(int64_t index);
int64_t NodeIndex(const NodeId& node);

// A batch: row indices, or null for all rows (then empty).
std::vector<int64_t> ReadBatch(const nlohmann::json& batch);

// A batch as rows: all of them for null.
std::vector<int64_t> RowsOf(const nlohmann::json& batch,
                            const simports::Problem& problem);

// "" when `got` matches the array `want`, else the first difference.
std::string Difference(const std::string& what, absl::Span<const float> got,
                       const nlohmann::json& want);

// What is recorded of node i as `field`, if it is, is `got`.
void ExpectRow(const State& want, const std::string& field, size_t i,
               absl::Span<const float> got);
void ExpectValue(const State& want, const std::string& field, size_t i,
                 double got);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_GOLDEN_CASE_H_
