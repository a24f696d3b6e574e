#include "tests/golden/golden_network.h"

#include "gtest/gtest.h"

namespace dfl::golden {

using nlohmann::json;

std::vector<NodeId> ScriptedDecisions::ChooseNeighbours(
    absl::Span<const NodeId> candidates, int64_t count) {
  if (!asked_is_scripted || static_cast<int64_t>(asked.size()) != count ||
      count > static_cast<int64_t>(candidates.size())) {
    ++wrong_counts;
  }
  return asked;
}

uint64_t ScriptedDecisions::NameCoordinates(const NodeId& /*to*/) {
  if (names.empty()) return 0;  // the coordinates are in the script
  const uint64_t next = names.front();
  names.pop_front();
  return next;
}

int64_t ScriptedDecisions::DrawFrom(absl::string_view /*purpose*/,
                                    core::IntRange range) {
  Require(range.lo == range.hi, "a range to draw from");
  return range.lo;
}

int64_t ScriptedDecisions::DrawAnew(absl::string_view purpose,
                                    core::IntRange /*range*/) {
  std::deque<int64_t>& scripted = drawn[std::string(purpose)];
  if (scripted.empty()) return int64_t{1} << 40;
  const int64_t next = scripted.front();
  scripted.pop_front();
  return next;
}

bool ScriptedDecisions::Happens(absl::string_view purpose, const NodeId& peer,
                                double /*probability*/) {
  std::deque<bool>& scripted = happens[{std::string(purpose), peer}];
  if (scripted.empty()) {
    ++wrong_counts;
    return false;
  }
  const bool next = scripted.front();
  scripted.pop_front();
  return next;
}

std::vector<int64_t> ScriptedDecisions::ChooseTogether(
    uint64_t /*run_seed*/, absl::string_view purpose, int64_t /*round*/,
    int64_t candidates, int64_t count) {
  const std::vector<int64_t>& scripted = together[std::string(purpose)];
  if (static_cast<int64_t>(scripted.size()) != count || count > candidates) {
    ++wrong_counts;
  }
  return scripted;
}

double ScriptedDecisions::DrawWait(absl::string_view /*purpose*/, double mean) {
  return mean;
}

std::vector<int64_t> ScriptedDecisions::ChooseCoordinates(
    absl::string_view purpose, int64_t n, int64_t count) {
  auto& scripted = coordinates[std::string(purpose)];
  const auto fits = [&](const std::vector<int64_t>& next) {
    return any_count || static_cast<int64_t>(next.size()) == count;
  };
  if (scripted.empty() || !fits(scripted.front()) || count > n) {
    ++wrong_counts;
    return {};
  }
  std::vector<int64_t> next = std::move(scripted.front());
  scripted.pop_front();
  return next;
}

namespace {

std::vector<NodeId> NamesOf(size_t nodes) {
  std::vector<NodeId> names;
  for (size_t i = 0; i < nodes; ++i) {
    names.push_back(NodeName(static_cast<int64_t>(i)));
  }
  return names;
}

}  // namespace

GoldenNetwork::GoldenNetwork(const Case& golden)
    : GoldenNetwork(golden, MakeProblems(golden.at("problem"))) {}

GoldenNetwork::GoldenNetwork(
    const Case& golden,
    std::vector<std::unique_ptr<simports::Problem>> problems)
    : TestNetwork(NamesOf(problems.size())),
      golden_(golden),
      problems_(std::move(problems)),
      records_(problems_.size()) {
  CheckProblems(golden_, problems_);
}

void GoldenNetwork::AddNode(size_t i, core::NodePlan plan, const json& start,
                            int64_t batches_per_pass, int64_t step) {
  Require(!start.is_null(), "a start of " + name(i).name());
  auto decisions = std::make_unique<ScriptedDecisions>();
  records_[i].decisions = decisions.get();
  Add(i, {.plan = std::move(plan),
          .decisions = std::move(decisions),
          .parameters = start.get<std::vector<float>>(),
          .problem = problems_[i].get(),
          .batches_per_pass = batches_per_pass});
  Handle(i, core::Started{step});
}

void GoldenNetwork::NewRound() {
  for (Record& record : records_) record.counts = {};
  pushes_.clear();
}

void GoldenNetwork::NewRoundOfAll() {
  NewRound();
  for (size_t i = 0; i < size(); ++i) Begin(i);
}

void GoldenNetwork::OnAction(size_t i, const core::Action& action) {
  ++records_[i].counts[action.index()];
  if (const auto* push = std::get_if<core::Push>(&action)) {
    pushes_.push_back({i, push->peers, push->round, push->values.empty()});
  } else if (std::holds_alternative<core::ComputeGradient>(action)) {
    records_[i].trained_from = parameters(i);
  }
}

std::vector<int64_t> GoldenNetwork::NextBatch(size_t i) {
  Record& record = records_[i];
  record.has_batch = !record.batches.empty();
  if (!record.has_batch) return {};
  std::vector<int64_t> batch = std::move(record.batches.front());
  record.batches.pop_front();
  return batch;
}

std::optional<double> GoldenNetwork::ComputeTime(size_t i) {
  if (!records_[i].has_batch) return std::nullopt;
  return compute_time_;
}

void GoldenNetwork::ExpectPushesOf(int64_t k) const {
  for (const Pushed& push : pushes_) {
    EXPECT_EQ(push.round, k) << "node " << push.from;
    EXPECT_TRUE(push.of_parameters) << "node " << push.from;
  }
}

void GoldenNetwork::ExpectDone(size_t i) const {
  EXPECT_EQ(Count<core::StepDone>(i), 1) << "node " << i;
  EXPECT_TRUE(records_[i].batches.empty()) << "node " << i;
  EXPECT_FALSE(node(i).computes_at.has_value()) << "node " << i;
  EXPECT_EQ(records_[i].decisions->wrong_counts, 0) << "node " << i;
}

void GoldenNetwork::ExpectAllDone() const {
  for (size_t i = 0; i < size(); ++i) ExpectDone(i);
}

void GoldenNetwork::ExpectNobodyMissed() const {
  for (size_t i = 0; i < size(); ++i) {
    EXPECT_EQ(Count<core::Missed>(i), 0) << "node " << i;
  }
}

}  // namespace dfl::golden
