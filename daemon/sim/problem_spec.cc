#include "daemon/sim/problem_spec.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/values.h"

namespace dfl::sim {
namespace {

using config::YamlNode;
using config::YamlReader;
using Kind = ProblemSpec::Kind;

void Count(const YamlNode& section, absl::string_view key, int64_t least,
           YamlReader& yaml, int64_t& out) {
  yaml.Scalar(
      section, kProblemPath, key,
      [least](absl::string_view text) -> std::optional<int64_t> {
        const std::optional<int64_t> number = config::ReadInteger(text);
        return number.has_value() && *number >= least ? number : std::nullopt;
      },
      absl::StrCat("an integer >= ", least), out);
}

void ReadKind(const YamlNode& section, YamlReader& yaml, Kind& out) {
  yaml.Scalar(
      section, kProblemPath, "kind",
      [](absl::string_view text) -> std::optional<Kind> {
        if (text == "linear") return Kind::kLinear;
        if (text == "logistic") return Kind::kLogistic;
        if (text == "softmax") return Kind::kSoftmax;
        if (text == "data") return Kind::kData;
        return std::nullopt;
      },
      "linear, logistic, softmax or data", out);
}

// A problem that is made from a seed.
void ReadGenerated(const YamlNode& section, YamlReader& yaml,
                   ProblemSpec& problem) {
  std::vector<std::string> keys = {"kind", "n", "rows", "seed"};
  const bool softmax = problem.kind == Kind::kSoftmax;
  if (softmax) keys.insert(keys.end(), {"classes", "skew", "test_rows"});
  yaml.TakeKeys(section, kProblemPath, keys);
  Count(section, "n", 1, yaml, problem.n);
  Count(section, "rows", 1, yaml, problem.rows);
  yaml.Unsigned(section, kProblemPath, "seed", problem.seed);
  if (!softmax) return;
  Count(section, "classes", 2, yaml, problem.classes);
  Count(section, "test_rows", 1, yaml, problem.test_rows);
  yaml.Scalar(
      section, kProblemPath, "skew",
      [](absl::string_view text) -> std::optional<double> {
        const std::optional<double> number = config::ReadNumber(text);
        return number.has_value() && *number >= 0 ? number : std::nullopt;
      },
      "a number >= 0, the concentration of a Dirichlet distribution; 0: no "
      "skew",
      problem.skew);
}

absl::Status ReadData(const YamlNode& section, YamlReader& yaml,
                      const core::RunPlan& plan, ProblemSpec& problem) {
  problem.eval_rows = plan.evaluation.examples;
  Count(section, "eval_rows", 0, yaml, problem.eval_rows);
  config::DataSurroundings around;
  around.path = kProblemPath;
  around.keys = {"kind", "eval_rows"};
  around.parts = static_cast<int64_t>(plan.members.size());
  DFL_ASSIGN_OR_RETURN(problem.data,
                       config::ReadDataSettings(section, yaml.file(), around));
  const YamlNode* partition = section.Find("partition");
  problem.partition_seed_written =
      partition != nullptr && partition->Find("seed") != nullptr;
  if (problem.data.train_paths.empty()) {
    yaml.Add(section.line, kProblemPath,
             "`train: {paths: [...]}` is missing; the keys are those of the "
             "section `data` of a daemon's settings");
  }
  return absl::OkStatus();
}

// The model that a generated problem is of.
core::ModelSpec ModelOf(const ProblemSpec& problem) {
  core::ModelSpec model;
  model.kind = problem.kind == Kind::kLinear ? "linear" : "logistic";
  model.classes = problem.kind == Kind::kLinear     ? 0
                  : problem.kind == Kind::kLogistic ? 2
                                                    : problem.classes;
  return model;
}

// Another model in the plan would be ignored.
void FollowModel(const YamlNode& root, YamlReader& yaml, core::RunPlan& plan,
                 const ProblemSpec& problem) {
  const core::ModelSpec model = ModelOf(problem);
  const YamlNode* written = root.Find("model");
  if (written == nullptr) {
    plan.model = model;
    return;
  }
  const core::ModelSpec& given = plan.model;
  if (given.kind == model.kind && (given.classes == model.classes ||
                                   given.classes == core::kClassesOfData)) {
    plan.model.classes = model.classes;
    return;
  }
  const std::string kind = problem.kind == Kind::kLinear     ? "linear"
                           : problem.kind == Kind::kLogistic ? "logistic"
                                                             : "softmax";
  yaml.Add(written->key_line, "model",
           absl::StrCat("found {kind: ", given.kind,
                        ", classes: ", given.classes, "}; allowed: {",
                        "kind: ", model.kind, ", classes: ", model.classes,
                        "}, since network.problem.kind is ", kind,
                        "; leave the section out and it follows"));
}

}  // namespace

absl::Status ReadProblem(const YamlNode& root, const YamlNode& network,
                         YamlReader& yaml, core::RunPlan& plan,
                         ProblemSpec& problem) {
  const YamlNode* section = network.Find("problem");
  if (section != nullptr && yaml.IsSection(*section, kProblemPath)) {
    ReadKind(*section, yaml, problem.kind);
    if (problem.kind == Kind::kData) {
      return ReadData(*section, yaml, plan, problem);
    }
    ReadGenerated(*section, yaml, problem);
  }
  FollowModel(root, yaml, plan, problem);
  return absl::OkStatus();
}

}  // namespace dfl::sim
