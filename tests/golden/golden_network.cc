#include "tests/golden/golden_network.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/core/algorithms/catalogue.h"
#include "tests/support/recorded_actions.h"

namespace dfl::golden {

std::vector<NodeId> ScriptedDecisions::ChooseNeighbours(
    absl::Span<const NodeId> candidates, int64_t count) {
  if (!asked_is_scripted || static_cast<int64_t>(asked.size()) != count ||
      count > static_cast<int64_t>(candidates.size())) {
    ++wrong_counts;
  }
  return asked;
}

uint64_t ScriptedDecisions::NameCoordinates(const NodeId& /*to*/) {
  return 0;  // the coordinates themselves are in the script
}

int64_t ScriptedDecisions::DrawFrom(absl::string_view /*purpose*/,
                                    core::IntRange range) {
  Require(range.lo == range.hi, "a range to draw from");
  return range.lo;
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

GoldenNode::GoldenNode(const std::string& algorithm, core::NodePlan plan,
                       std::vector<float> start,
                       const simports::Problem& problem,
                       int64_t batches_per_pass, int64_t step)
    : parameters(std::move(start)),
      problem_(problem),
      gradient_(parameters.size()) {
  core::AlgorithmContext context;
  context.plan = std::move(plan);
  context.vectors.parameters = absl::MakeSpan(parameters);
  context.vectors.gradient = absl::MakeSpan(gradient_);
  context.batches_per_pass = batches_per_pass;
  context.train_rows = problem.rows();
  auto made = core::CreateAlgorithm(algorithm, std::move(context), decisions);
  Require(made.ok(), made.status().ToString());
  algorithm_ = std::move(made).value();
  Handle(core::Started{step});
}

void GoldenNode::Handle(core::Event event) {
  core::ActionsCarriedOut actions([this](core::Action action) {
    if (const auto* push = std::get_if<core::Push>(&action)) {
      pushed_.emplace_back(push->values.begin(), push->values.end());
      if (push->values.empty()) pushed_.back() = parameters;
    }
    actions_.push_back(std::move(action));
  });
  algorithm_->Handle(std::move(event), actions);
}

std::vector<float> GoldenNode::TakePushed() {
  Require(!pushed_.empty(), "nothing was pushed");
  std::vector<float> values = std::move(pushed_.front());
  pushed_.pop_front();
  return values;
}

void GoldenNode::GradientAt(const std::vector<float>& model,
                            const std::vector<int64_t>& batch) {
  problem_.Gradient(model, batch, absl::MakeSpan(gradient_));
  Handle(core::GradientReady{problem_.Loss(model, batch),
                             static_cast<int64_t>(batch.size())});
}

void GoldenNode::SpoiltGradient() {
  std::fill(gradient_.begin(), gradient_.end(),
            std::numeric_limits<float>::quiet_NaN());
  Handle(core::GradientReady{});
}

void AddProxKnobs(const nlohmann::json& prox, core::KnobValues& knobs) {
  knobs["prox"] = prox.at("type").get<std::string>();
  for (const char* name : {"lambda", "theta", "a"}) {
    if (prox.contains(name)) knobs[name] = prox.at(name).get<double>();
  }
}

}  // namespace dfl::golden
