#include "daemon/console/catalogue.h"
#include "daemon/core/algorithms/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace dfl::console {
namespace {

const char* ExchangeName(core::Exchange exchange) {
  switch (exchange) {
    case core::Exchange::kNone:
      return "none";
    case core::Exchange::kPull:
      return "pull";
    case core::Exchange::kPush:
      return "push";
  }
  return "none";
}

std::string GraphText(const core::AlgorithmInfo& info) {
  if (info.exchange == core::Exchange::kNone) return "any; it is not used";
  if (info.complete_graph) return "complete";
  return info.graphs == core::GraphKind::kDirected
             ? "any, directed or not"
             : "any whose edges run both ways";
}

std::string KnobHelp(const core::KnobSpec& spec) {
  return absl::StrCat(spec.help,
                      spec.retunable ? "" : " Fixed while the run goes on.",
                      spec.shared ? " The same on every node." : "");
}

// Algorithms that a line names.
constexpr size_t kNamesShown = 4;

constexpr core::KnobNoun kNouns[] = {core::KnobNoun::kAlgorithm,
                                     core::KnobNoun::kParticipation,
                                     core::KnobNoun::kPeriod};

std::vector<const core::KnobSpec*> SpecsOf(const core::AlgorithmInfo& algorithm,
                                           core::KnobNoun noun) {
  std::vector<const core::KnobSpec*> specs;
  for (const core::KnobSpec& spec : algorithm.knobs) {
    if (spec.noun == noun) specs.push_back(&spec);
  }
  return specs;
}

Json ToJsonValue(const core::KnobValue& value) {
  if (const auto* range = std::get_if<core::IntRange>(&value)) {
    return Json::array({range->lo, range->hi});
  }
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return std::get<std::string>(value);
}

const core::KnobValue& ValueOf(const core::KnobSpec& spec,
                               const core::RunPlan* plan) {
  if (plan != nullptr) {
    const auto found = plan->algorithm.knobs.find(spec.name);
    if (found != plan->algorithm.knobs.end()) return found->second;
  }
  return spec.default_value;
}

// What single nodes have instead, by name.
std::vector<std::pair<std::string, core::KnobValue>> OverridesOf(
    const core::KnobSpec& spec, const core::RunPlan* plan) {
  std::vector<std::pair<std::string, core::KnobValue>> out;
  if (plan == nullptr) return out;
  for (const auto& [node, overrides] : plan->nodes) {
    const auto found = overrides.knobs.find(spec.name);
    if (found != overrides.knobs.end()) {
      out.emplace_back(node.name(), found->second);
    }
  }
  return out;
}

std::string WithUnit(const core::KnobSpec& spec) {
  return spec.unit.empty() ? spec.AllowedText()
                           : absl::StrCat(spec.AllowedText(), ", ", spec.unit);
}

// "vectors for each neighbour, at the most: 2 taken from it, ...".
std::string EdgeText(const core::EdgeCost& edge) {
  std::vector<std::string> kept;
  const auto add = [&kept](int64_t count, absl::string_view what) {
    if (count > 0) kept.push_back(absl::StrCat(count, " ", what));
  };
  add(edge.given, "given to it and not known to be taken");
  add(edge.taken, "taken from it");
  add(edge.sent, "on the way to it");
  add(edge.waiting, "of its models that wait");
  return kept.empty()
             ? "no vectors for neighbours"
             : absl::StrCat("vectors for each neighbour, at the most: ",
                            absl::StrJoin(kept, ", "));
}

// What the plan's section `optimizer` may name.
std::string OptimizerText(const core::AlgorithmInfo& info) {
  if (!info.own_step.empty()) return "none: " + info.own_step;
  std::string text = "sgd, momentum, adam or adamw";
  if (info.optimizer_needs_local_form) text += ", with form: local";
  if (!info.optimizer_replaces.empty()) {
    absl::StrAppend(&text, ", in place of ", info.optimizer_replaces);
  }
  return text;
}

// What an entry says of itself, by key.
std::vector<std::pair<std::string, std::string>> LinesOf(
    const core::AlgorithmInfo& info) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"name", info.name},
      {"summary", info.summary},
      {"source", info.source},
      {"exchange", ExchangeName(info.exchange)},
      {"graph", GraphText(info)},
      {"memory", absl::StrCat(info.extra_vectors,
                              " vectors beside parameters and gradient")},
      {"edges", EdgeText(info.edge)},
      {"pace", info.pace},
      {"cost", info.cost}};
  lines.emplace_back("optimizer", OptimizerText(info));
  if (info.dense_only) {
    lines.emplace_back("messages", "dense only: " + info.why_dense);
  }
  if (info.gives_mass) {
    lines.emplace_back("mass", info.exact_mass.empty()
                                   ? "fp32, fp16, bf16 or int8 (codec.mass)"
                                   : "fp32 only: " + info.exact_mass);
  }
  if (!info.auxiliary.empty()) {
    lines.emplace_back(
        "beside x",
        absl::StrCat(
            absl::StrJoin(info.auxiliary, ", "),
            info.gradient_estimate.empty()
                ? ""
                : absl::StrCat("; the mean of ", info.gradient_estimate,
                               " estimates the gradient")));
  }
  if (!info.caveats.empty()) lines.emplace_back("mind", info.caveats);
  return lines;
}

// Where a heading of a page is linked to. Signs fall away, and the second of
// two that are alike then ("fedavg+" after "fedavg") is numbered.
std::string Anchor(const std::string& heading) {
  return absl::StrReplaceAll(heading, {{"+", "-1"}});
}

// Text in a cell of a table.
std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"|", "\\|"}, {"<", "\\<"}, {"*", "\\*"}, {"_", "\\_"}});
}

}  // namespace

const char* NounName(core::KnobNoun noun) {
  switch (noun) {
    case core::KnobNoun::kAlgorithm:
      return "algorithm";
    case core::KnobNoun::kParticipation:
      return "participation";
    case core::KnobNoun::kPeriod:
      return "period";
  }
  return "algorithm";
}

Json KnobsJson(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
               const core::RunPlan* plan) {
  Json knobs = Json::array();
  for (const core::KnobSpec* spec : SpecsOf(algorithm, noun)) {
    Json overrides = Json::object();
    for (const auto& [node, value] : OverridesOf(*spec, plan)) {
      overrides[node] = ToJsonValue(value);
    }
    knobs.push_back(Json{{"name", spec->name},
                         {"value", ToJsonValue(ValueOf(*spec, plan))},
                         {"default", ToJsonValue(spec->default_value)},
                         {"allowed", spec->AllowedText()},
                         {"unit", spec->unit},
                         {"retunable", spec->retunable},
                         {"shared", spec->shared},
                         {"noun", NounName(spec->noun)},
                         {"help", spec->help},
                         {"nodes", std::move(overrides)}});
  }
  return knobs;
}

Table KnobsTable(const core::AlgorithmInfo& algorithm, core::KnobNoun noun,
                 const core::RunPlan* plan) {
  Table table({"KNOB", plan == nullptr ? "DEFAULT" : "VALUE", "ALLOWED",
               plan == nullptr ? "" : "NODES", "MEANING"});
  for (const core::KnobSpec* spec : SpecsOf(algorithm, noun)) {
    std::vector<std::string> overrides;
    for (const auto& [node, value] : OverridesOf(*spec, plan)) {
      overrides.push_back(absl::StrCat(node, "=", core::ToString(value)));
    }
    table.Add({spec->name, core::ToString(ValueOf(*spec, plan)),
               WithUnit(*spec), absl::StrJoin(overrides, ", "),
               KnobHelp(*spec)});
  }
  return table;
}

Json CatalogueJson() {
  Json list = Json::array();
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    list.push_back(AlgorithmJson(info, nullptr));
  }
  return Json{{"algorithms", std::move(list)}};
}

std::string CatalogueText() {
  Table table({"ALGORITHM", "EXCHANGE", "SUMMARY"});
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    table.Add({info.name, ExchangeName(info.exchange), info.summary});
  }
  return table.ToString();
}

Json AlgorithmJson(const core::AlgorithmInfo& info, const core::RunPlan* plan) {
  Json knobs = Json::array();
  for (const core::KnobNoun noun : kNouns) {
    for (Json& knob : KnobsJson(info, noun, plan)) knobs.push_back(knob);
  }
  return Json{{"name", info.name},
              {"summary", info.summary},
              {"source", info.source},
              {"caveats", info.caveats},
              {"exchange", ExchangeName(info.exchange)},
              {"directed", info.graphs == core::GraphKind::kDirected},
              {"complete_graph", info.complete_graph},
              {"dense_only", info.dense_only},
              {"gives_mass", info.gives_mass},
              {"exact_mass", info.exact_mass},
              {"lock_step", info.lock_step},
              {"auxiliary", info.auxiliary},
              {"gradient_estimate", info.gradient_estimate},
              {"optimizer", info.own_step.empty()},
              {"own_step", info.own_step},
              {"extra_vectors", info.extra_vectors},
              {"edge",
               {{"given", info.edge.given},
                {"taken", info.edge.taken},
                {"sent", info.edge.sent},
                {"waiting", info.edge.waiting},
                {"parcel", info.edge.parcel}}},
              {"pace", info.pace},
              {"cost", info.cost},
              {"knobs", std::move(knobs)}};
}

std::string AlgorithmText(const core::AlgorithmInfo& info,
                          const core::RunPlan* plan,
                          const std::string& program) {
  std::string out = KeyValueLines(LinesOf(info));
  for (const core::KnobNoun noun : kNouns) {
    const Table table = KnobsTable(info, noun, plan);
    if (table.empty()) continue;
    absl::StrAppend(&out, "\n",
                    program.empty()
                        ? absl::StrCat("knobs of ", NounName(noun))
                        : absl::StrCat(program, " ", NounName(noun), " set"),
                    ":\n", table.ToString());
  }
  return out;
}

std::string KnobsHelp(core::KnobNoun noun) {
  // By name and what is allowed.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>>
      owners;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    for (const core::KnobSpec* spec : SpecsOf(info, noun)) {
      owners[{spec->name, WithUnit(*spec)}].push_back(info.name);
    }
  }
  Table table({"KNOB", "ALLOWED", "OF"});
  for (const auto& [knob, names] : owners) {
    const size_t shown = std::min(names.size(), kNamesShown);
    table.Add(
        {knob.first, knob.second,
         absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      shown < names.size()
                          ? absl::StrCat(" and ", names.size() - shown, " more")
                          : "")});
  }
  return table.ToString();
}

std::string CatalogueMarkdown() {
  std::string out =
      "# Algorithms\n\n"
      "This page is what `dflctl algorithm show NAME` and `dflsim algorithm "
      "show NAME`\n"
      "print, for every algorithm. It is written from the code. Where an "
      "algorithm\n"
      "departs from its paper, and why, is in [papers](papers/README.md).\n"
      "[rounds](rounds.md) explains what a step, a round and an iteration "
      "are.\n\n"
      "| algorithm | what it does |\n| --- | --- |\n";
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    absl::StrAppend(&out, "| [", info.name, "](#", Anchor(info.name), ") | ",
                    Cell(info.summary), " |\n");
  }
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    absl::StrAppend(&out, "\n## ", info.name, "\n\n| | |\n| --- | --- |\n");
    for (const auto& [key, text] : LinesOf(info)) {
      if (key == "name") continue;
      absl::StrAppend(&out, "| ", key, " | ", Cell(text), " |\n");
    }
    if (info.knobs.empty()) continue;
    absl::StrAppend(&out,
                    "\n| knob | default | allowed | set by | meaning |\n"
                    "| --- | --- | --- | --- | --- |\n");
    for (const core::KnobNoun noun : kNouns) {
      for (const core::KnobSpec* spec : SpecsOf(info, noun)) {
        absl::StrAppend(&out, "| `", spec->name, "` | ",
                        Cell(core::ToString(spec->default_value)), " | ",
                        Cell(WithUnit(*spec)), " | `", NounName(noun),
                        " set` | ", Cell(KnobHelp(*spec)), " |\n");
      }
    }
  }
  return out;
}

}  // namespace dfl::console
