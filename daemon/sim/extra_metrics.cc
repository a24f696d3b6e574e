#include "daemon/sim/extra_metrics.h"
#include "daemon/core/algorithms/catalogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/config/values.h"
#include "daemon/core/rounds/prox.h"

namespace dfl::sim {
namespace {

using config::YamlNode;

constexpr char kConsensusError[] = "consensus_error_";

void AddOnce(std::string name, std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(std::move(name));
  }
}

void AddAlgorithms(const YamlNode& node, std::vector<std::string>& names) {
  const YamlNode* name = node.key == "algorithm" ? node.Find("name") : nullptr;
  if (name != nullptr && name->kind == YamlNode::Kind::kScalar) {
    AddOnce(name->text, names);
  }
  for (const YamlNode& item : node.items) AddAlgorithms(item, names);
}

// What at least one of `algorithms` has.
std::vector<std::string> Allowed(absl::Span<const std::string> algorithms,
                                 const core::Catalogue& catalogue) {
  std::vector<std::string> allowed = {kProximalGradient};
  for (const std::string& name : algorithms) {
    const auto info = catalogue.Find(name);
    if (!info.ok()) continue;
    if (!(*info)->gradient_estimate.empty()) AddOnce(kGradientError, allowed);
    for (const std::string& symbol : (*info)->auxiliary) {
      AddOnce(absl::StrCat(kConsensusError, symbol), allowed);
    }
  }
  return allowed;
}

}  // namespace

absl::string_view AuxiliaryOf(absl::string_view metric) {
  return absl::ConsumePrefix(&metric, kConsensusError) ? metric : "";
}

std::string ExtraMetricLabel(absl::string_view metric) {
  if (metric == kGradientError) return "|mean grad f_i(w_i) - its estimate|^2";
  if (metric == kProximalGradient) return "|G(mean w)|^2";
  const absl::string_view v = AuxiliaryOf(metric);
  return absl::StrCat("mean |", v, "_i - mean ", v, "|^2");
}

std::vector<std::string> AlgorithmsNamed(const YamlNode& document) {
  std::vector<std::string> names;
  AddAlgorithms(document, names);
  return names;
}

std::vector<std::string> ReadMetrics(const YamlNode& network,
                                     absl::Span<const std::string> algorithms,
                                     const core::Catalogue& catalogue,
                                     config::YamlReader& yaml) {
  const std::vector<std::string> allowed = Allowed(algorithms, catalogue);
  std::vector<std::string> metrics;
  yaml.List(network, "network", "metrics",
            absl::StrCat("a list such as [", kProximalGradient, "]"),
            [&](const YamlNode& node, const std::string& path) {
              if (node.kind != YamlNode::Kind::kScalar ||
                  std::find(allowed.begin(), allowed.end(), node.text) ==
                      allowed.end()) {
                yaml.Wrong(node, path,
                           absl::StrCat(
                               absl::StrJoin(allowed, ", "), ", which is what ",
                               absl::StrJoin(algorithms, ", "),
                               algorithms.size() > 1 ? " have" : " has"));
              } else if (std::find(metrics.begin(), metrics.end(), node.text) !=
                         metrics.end()) {
                yaml.Add(node.line, path,
                         absl::StrCat("found ", config::Quoted(node.text),
                                      " twice; allowed: each name once"));
              } else {
                metrics.push_back(node.text);
              }
            });
  return metrics;
}

double SquaredProximalGradient(const core::AlgorithmInfo& algorithm,
                               const core::Knobs& knobs,
                               absl::Span<const float> x,
                               absl::Span<const double> gradient) {
  core::Prox prox;
  double alpha = 1;
  if (algorithm.prox_steps != nullptr) {
    prox = core::ProxOf(knobs);
    alpha = algorithm.prox_steps(knobs).front();
  }
  double sum = 0;
  for (size_t l = 0; l < x.size(); ++l) {
    double g = gradient[l];
    if (prox.h != core::Regulariser::kNone) {
      g = (x[l] - core::ProximalPoint(prox, alpha, x[l] - alpha * g)) / alpha;
    }
    sum += g * g;
  }
  return sum;
}

}  // namespace dfl::sim
