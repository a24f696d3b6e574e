#include "tests/golden/run_parts.h"

#include <algorithm>
#include <utility>

#include "daemon/core/algorithms/catalogue.h"

namespace dfl::golden {

using core::KnobType;
using nlohmann::json;

core::NodePlan MakePlan(const std::string& algorithm, int64_t self,
                        const core::KnobValues& knobs) {
  core::NodePlan plan;
  plan.self = NodeName(self);
  const auto info = core::BuiltInCatalogue().Find(algorithm);
  Require(info.ok(), info.status().ToString());
  auto resolved = core::Knobs::Resolve((*info)->knobs, knobs);
  Require(resolved.ok(), resolved.status().ToString());
  plan.knobs = *std::move(resolved);
  plan.algorithm = *info;
  return plan;
}

core::KnobValues KnobsOf(const Case& golden) {
  const json& params = golden.at("params");
  const auto info = core::BuiltInCatalogue().Find(golden.algorithm());
  Require(info.ok(), info.status().ToString());
  core::KnobValues knobs;
  for (const core::KnobSpec& spec : (*info)->knobs) {
    const std::string key = spec.name == "form" ? "mode" : spec.name;
    if (!params.contains(key)) continue;
    const json& value = params.at(key);
    if (spec.type == KnobType::kNumber && value.is_number()) {
      knobs[spec.name] = value.get<double>();
    } else if (spec.type == KnobType::kInteger && value.is_number_integer()) {
      knobs[spec.name] = value.get<int64_t>();
    } else if (spec.type == KnobType::kFlag && value.is_boolean()) {
      knobs[spec.name] = value.get<bool>();
    } else if (spec.type == KnobType::kText && value.is_string()) {
      knobs[spec.name] = value.get<std::string>();
    }
  }
  if (params.contains("prox")) AddProxKnobs(params.at("prox"), knobs);
  return knobs;
}

void SetRow(const json& row, int64_t self, core::NodePlan* plan) {
  plan->neighbours.clear();
  for (int64_t j = 0; j < static_cast<int64_t>(row.size()); ++j) {
    const double weight = row[j].get<double>();
    if (j == self) {
      plan->self_weight = weight;
    } else if (weight != 0) {
      plan->neighbours.push_back({NodeName(j), weight});
    }
  }
}

std::vector<NodeId> Named(const json& indices) {
  std::vector<NodeId> names;
  for (const json& i : indices) names.push_back(NodeName(i.get<int64_t>()));
  std::sort(names.begin(), names.end());
  return names;
}

void AddProxKnobs(const nlohmann::json& prox, core::KnobValues& knobs) {
  knobs["prox"] = prox.at("type").get<std::string>();
  for (const char* name : {"lambda", "theta", "a"}) {
    if (prox.contains(name)) knobs[name] = prox.at(name).get<double>();
  }
}

std::vector<std::vector<int64_t>> BatchesOf(const json& step, size_t i) {
  if (!step.contains("local")) return {ReadBatch(step.at("batch").at(i))};
  std::vector<std::vector<int64_t>> batches;
  for (const json& batch : step.at("local").at(i)) {
    batches.push_back(ReadBatch(batch));
  }
  return batches;
}

int64_t BatchesPerPass(const Case& golden, const simports::Problem& problem) {
  const int64_t batch = golden.at("params").value("batch_size", int64_t{1});
  return (problem.rows() + batch - 1) / batch;
}

}  // namespace dfl::golden
