#include "daemon/config/plan_yaml.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::config {
namespace {

// A knob's value as one text: "0.5", or "[5, 10]" of a list.
std::optional<std::string> KnobText(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return node.text;
  if (node.kind != YamlNode::Kind::kList) return std::nullopt;
  std::vector<std::string> items;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::kScalar) return std::nullopt;
    items.push_back(item.text);
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

// Walks the tree and fills the plan. A value that is not allowed is noted with
// its line and left at its default, so that later ones are still looked at.
class PlanReader : private YamlReader {
 public:
  explicit PlanReader(absl::string_view file) : YamlReader(file) {}

  absl::StatusOr<core::CheckedPlan> Read(
      const YamlNode& root, const PlanSurroundings& around,
      absl::FunctionRef<void(core::RunPlan&)> complete) {
    if (!IsSection(root, "plan")) return status();
    std::vector<std::string> keys = {
        "version",    "run",       "seed",     "members", "model",
        "batch_size", "algorithm", "topology", "codec",   "evaluation",
        "stop",       "deadline",  "nodes"};
    keys.insert(keys.end(), around.keys.begin(), around.keys.end());
    TakeKeys(root, "", keys);
    Unsigned(root, "", "version", plan_.version);
    Text(root, "", "run", plan_.run_id);
    Unsigned(root, "", "seed", plan_.seed);
    Integer(root, "", "batch_size", plan_.batch_size);
    ReadMembers(root);
    if (root.Find("members") == nullptr) plan_.members = around.members;
    ReadModel(root);
    ReadAlgorithm(root);
    ReadTopology(root);
    ReadCodec(root);
    ReadEvaluation(root);
    ReadStop(root);
    if (const YamlNode* section = Section(root, "", "deadline", {"exchange"})) {
      Duration(*section, "deadline", "exchange", plan_.deadline.exchange);
    }
    ReadNodes(root);
    DFL_RETURN_IF_ERROR(status());
    complete(plan_);
    absl::StatusOr<core::CheckedPlan> checked =
        core::CheckPlan(std::move(plan_));
    if (checked.ok()) return checked;
    const absl::string_view wrong = checked.status().message();
    return absl::InvalidArgumentError(
        absl::StrCat(file(), ":", LineOf(wrong), ": ", wrong));
  }

 private:
  void ReadMembers(const YamlNode& root) {
    std::map<NodeId, int> first_line;
    List(root, "", "members", "a list of names, or of {name: ..., rows: ...}",
         [&](const YamlNode& node, const std::string& element) {
           core::MemberSpec member;
           const YamlNode* name = &node;
           if (node.kind == YamlNode::Kind::kMap) {
             TakeKeys(node, element, {"name", "rows"});
             name = node.Find("name");
             if (name == nullptr) {
               Add(node.line, element, "its name is missing");
               return;
             }
             Integer(node, element, "rows", member.rows);
           }
           const std::optional<NodeId> id = Name(*name, element);
           if (!id.has_value()) return;
           const auto [earlier, fresh] = first_line.emplace(*id, node.line);
           if (!fresh) {
             Add(node.line, element,
                 absl::StrCat("found ", Quoted(id->name()),
                              " a second time, first in line ", earlier->second,
                              "; allowed: each name once"));
             return;
           }
           member.node = *id;
           plan_.members.push_back(std::move(member));
         });
    std::sort(plan_.members.begin(), plan_.members.end(),
              [](const core::MemberSpec& a, const core::MemberSpec& b) {
                return a.node < b.node;
              });
    // Later errors count the members as sorted.
    for (size_t i = 0; i < plan_.members.size(); ++i) {
      Move(Element("members", i), first_line[plan_.members[i].node]);
    }
  }

  void ReadModel(const YamlNode& root) {
    const YamlNode* section = Section(root, "", "model",
                                      {"kind", "classes", "input", "hidden",
                                       "dropout", "path", "loss", "l2"});
    if (section == nullptr) return;
    core::ModelSpec& model = plan_.model;
    Text(*section, "model", "kind", model.kind);
    Integer(*section, "model", "classes", model.classes);
    Integers(*section, "model", "input",
             "a list of integers such as [1, 28, 28]", model.input);
    Integers(*section, "model", "hidden",
             "a list of integers such as [256, 128]", model.hidden);
    Number(*section, "model", "dropout", model.dropout);
    Text(*section, "model", "path", model.path);
    Text(*section, "model", "loss", model.loss);
    Number(*section, "model", "l2", model.l2);
  }

  void ReadAlgorithm(const YamlNode& root) {
    const YamlNode* section = Section(root, "", "algorithm", {"name", "knobs"});
    const YamlNode* name = nullptr;
    if (section != nullptr) {
      Text(*section, "algorithm", "name", plan_.algorithm.name);
      name = section->Find("name");
    }
    const absl::StatusOr<const core::AlgorithmInfo*> info =
        core::FindAlgorithm(plan_.algorithm.name);
    if (!info.ok()) {
      Add(name == nullptr ? 1 : name->line, "algorithm.name",
          info.status().message());
      return;
    }
    algorithm_ = *info;
    if (section == nullptr) return;
    if (const YamlNode* knobs = section->Find("knobs")) {
      ReadKnobs(*knobs, "algorithm.knobs", plan_.algorithm.knobs);
    }
  }

  void ReadKnobs(const YamlNode& section, const std::string& path,
                 core::KnobValues& out) {
    if (!IsSection(section, path) || algorithm_ == nullptr) return;
    std::vector<std::string> names;
    for (const core::KnobSpec& spec : algorithm_->knobs) {
      names.push_back(spec.name);
    }
    TakeKeys(section, path, names);
    for (const YamlNode& item : section.items) {
      const auto spec = std::find_if(
          algorithm_->knobs.begin(), algorithm_->knobs.end(),
          [&item](const core::KnobSpec& s) { return s.name == item.key; });
      if (spec == algorithm_->knobs.end()) continue;  // told by TakeKeys
      const std::optional<std::string> text = KnobText(item);
      if (!text.has_value()) {
        Wrong(item, Join(path, item.key), spec->AllowedText());
        continue;
      }
      absl::StatusOr<core::KnobValue> value = spec->Parse(*text);
      if (!value.ok()) {
        absl::string_view why = value.status().message();
        absl::ConsumePrefix(&why, absl::StrCat(item.key, ": "));
        Add(item.line, Join(path, item.key), why);
        continue;
      }
      out[item.key] = *std::move(value);
    }
  }

  // An edge, "[a, b]".
  void ReadEdge(const YamlNode& node, const std::string& path,
                absl::string_view allowed, core::EdgeList& out) {
    if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) {
      Wrong(node, path, allowed);
      return;
    }
    const std::optional<NodeId> a = Name(node.items[0], path);
    const std::optional<NodeId> b = Name(node.items[1], path);
    if (a.has_value() && b.has_value()) out.emplace_back(*a, *b);
  }

  void ReadTopology(const YamlNode& root) {
    const YamlNode* section =
        Section(root, "", "topology",
                {"kind", "edge_probability", "degree", "radius", "edges",
                 "edge_sets", "directed", "every", "weights", "matrix"});
    if (section == nullptr) return;
    core::TopologySpec& topology = plan_.topology;
    Text(*section, "topology", "kind", topology.kind);
    Number(*section, "topology", "edge_probability", topology.edge_probability);
    Integer(*section, "topology", "degree", topology.degree);
    Number(*section, "topology", "radius", topology.radius);
    Scalar(*section, "topology", "directed", ReadFlag, "on or off",
           topology.directed);
    Integer(*section, "topology", "every", topology.every);
    Text(*section, "topology", "weights", topology.weights);
    constexpr char kEdges[] =
        "a list of pairs of names such as [[a, b], [b, c]]";
    List(*section, "topology", "edges", kEdges,
         [&](const YamlNode& node, const std::string& element) {
           ReadEdge(node, element, kEdges, topology.edges);
         });
    constexpr char kSets[] =
        "a list of lists of pairs of names such as [[[a, b]], [[b, c]]]";
    List(*section, "topology", "edge_sets", kSets,
         [&](const YamlNode& node, const std::string& element) {
           if (node.kind != YamlNode::Kind::kList) {
             Wrong(node, element, kSets);
             return;
           }
           core::EdgeList edges;
           for (size_t e = 0; e < node.items.size(); ++e) {
             const std::string edge = Element(element, e);
             Remember(edge, node.items[e].line);
             ReadEdge(node.items[e], edge, kEdges, edges);
           }
           topology.edge_sets.push_back(std::move(edges));
         });
    constexpr char kMatrix[] = "a list of rows of numbers, one a member";
    List(*section, "topology", "matrix", kMatrix,
         [&](const YamlNode& node, const std::string& element) {
           if (node.kind != YamlNode::Kind::kList) {
             Wrong(node, element, kMatrix);
             return;
           }
           std::vector<double> row;
           for (const YamlNode& item : node.items) {
             const std::optional<double> number =
                 item.kind == YamlNode::Kind::kScalar ? ReadNumber(item.text)
                                                      : std::nullopt;
             if (!number.has_value()) {
               Wrong(item, element, kMatrix);
               return;
             }
             row.push_back(*number);
           }
           topology.matrix.push_back(std::move(row));
         });
  }

  void ReadCodec(const YamlNode& root) {
    const YamlNode* section =
        Section(root, "", "codec", {"coordinates", "values", "rate", "mass"});
    core::MessageFormat& format = plan_.codec.format;
    // What nothing is said of is what the algorithm takes.
    const auto algorithm = core::FindAlgorithm(plan_.algorithm.name);
    if (algorithm.ok() && (*algorithm)->dense_only) {
      format.coordinates = core::Coordinates::kDense;
    }
    if (section == nullptr) return;
    Scalar(
        *section, "codec", "coordinates",
        [](absl::string_view text) -> std::optional<core::Coordinates> {
          const absl::StatusOr<core::Coordinates> value =
              core::ParseCoordinates(text);
          if (!value.ok()) return std::nullopt;
          return *value;
        },
        "dense, random or topk", format.coordinates);
    const auto read_values =
        [](absl::string_view text) -> std::optional<core::ValueType> {
      const absl::StatusOr<core::ValueType> value = core::ParseValueType(text);
      if (!value.ok()) return std::nullopt;
      return *value;
    };
    Scalar(
        *section, "codec", "values", read_values,
        "fp32, fp16, bf16 or int8; one sign bit is for differences, never for "
        "model values: choco-sgd and beer have the knob compressor: sign",
        format.values);
    Number(*section, "codec", "rate", plan_.codec.rate);
    Scalar(*section, "codec", "mass", read_values, "fp32, fp16, bf16 or int8",
           plan_.codec.mass);
  }

  void ReadEvaluation(const YamlNode& root) {
    const YamlNode* section =
        Section(root, "", "evaluation", {"every_steps", "examples"});
    if (section == nullptr) return;
    Integer(*section, "evaluation", "every_steps",
            plan_.evaluation.every_steps);
    Integer(*section, "evaluation", "examples", plan_.evaluation.examples);
  }

  void ReadStop(const YamlNode& root) {
    const YamlNode* section = Section(
        root, "", "stop", {"steps", "time", "loss_below", "accuracy_above"});
    if (section == nullptr) return;
    Integer(*section, "stop", "steps", plan_.stop.steps);
    Duration(*section, "stop", "time", plan_.stop.time);
    Number(*section, "stop", "loss_below", plan_.stop.loss_below);
    Number(*section, "stop", "accuracy_above", plan_.stop.accuracy_above);
  }

  void ReadNodes(const YamlNode& root) {
    const YamlNode* nodes = root.Find("nodes");
    if (nodes == nullptr || !IsSection(*nodes, "nodes")) return;
    for (const YamlNode& item : nodes->items) {
      const std::string path = Join("nodes", item.key);
      Remember(path, item.key_line);
      const absl::Status status = ValidateNodeName(item.key);
      if (!status.ok()) {
        Add(item.key_line, "nodes",
            absl::StrCat("found ", Quoted(item.key), ": ", status.message(),
                         "; allowed: the name of a member"));
        continue;
      }
      if (!IsSection(item, path)) continue;
      TakeKeys(item, path, {"knobs"});
      core::NodeOverrides overrides;
      if (const YamlNode* knobs = item.Find("knobs")) {
        ReadKnobs(*knobs, Join(path, "knobs"), overrides.knobs);
      }
      plan_.nodes[NodeId(item.key)] = std::move(overrides);
    }
  }

  core::RunPlan plan_;
  const core::AlgorithmInfo* algorithm_ = nullptr;
};

// Lines "key: value" of one section.
class Writer {
 public:
  void Line(int depth, absl::string_view key, absl::string_view value) {
    absl::StrAppend(&out_, std::string(2 * static_cast<size_t>(depth), ' '),
                    key, ":", value.empty() ? "" : " ", value, "\n");
  }
  void Item(int depth, absl::string_view value) {
    absl::StrAppend(&out_, std::string(2 * static_cast<size_t>(depth), ' '),
                    "- ", value, "\n");
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string IntegerList(const std::vector<int64_t>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

std::string KnobValueText(const core::KnobValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) {
    return WriteText(*text);
  }
  return core::ToString(value);
}

void WriteKnobs(int depth, const core::KnobValues& knobs, Writer& out) {
  if (knobs.empty()) return;
  out.Line(depth, "knobs", "");
  for (const auto& [name, value] : knobs) {
    out.Line(depth + 1, WriteText(name), KnobValueText(value));
  }
}

void WriteMembers(const core::RunPlan& plan, Writer& out) {
  if (plan.members.empty()) return;
  out.Line(0, "members", "");
  for (const core::MemberSpec& member : plan.members) {
    const std::string name = WriteText(member.node.name());
    out.Item(1, member.rows == 0 ? name
                                 : absl::StrCat("{name: ", name,
                                                ", rows: ", member.rows, "}"));
  }
}

// Keys that only some kinds of model look at are written where they differ from
// their defaults.
void WriteModel(const core::ModelSpec& model, Writer& out) {
  const core::ModelSpec defaults;
  out.Line(0, "model", "");
  out.Line(1, "kind", WriteText(model.kind));
  out.Line(1, "classes", absl::StrCat(model.classes));
  if (!model.input.empty()) out.Line(1, "input", IntegerList(model.input));
  if (model.hidden != defaults.hidden) {
    out.Line(1, "hidden", IntegerList(model.hidden));
  }
  if (model.dropout != 0) out.Line(1, "dropout", WriteNumber(model.dropout));
  if (!model.path.empty()) out.Line(1, "path", WriteText(model.path));
  if (!model.loss.empty()) out.Line(1, "loss", WriteText(model.loss));
  if (model.l2 != 0) out.Line(1, "l2", WriteNumber(model.l2));
}

std::string EdgeText(const std::pair<NodeId, NodeId>& edge) {
  const std::string names[] = {edge.first.name(), edge.second.name()};
  return WriteList(names);
}

void WriteTopology(const core::TopologySpec& topology, Writer& out) {
  const core::TopologySpec defaults;
  out.Line(0, "topology", "");
  out.Line(1, "kind", WriteText(topology.kind));
  if (topology.edge_probability != defaults.edge_probability) {
    out.Line(1, "edge_probability", WriteNumber(topology.edge_probability));
  }
  if (topology.degree != defaults.degree) {
    out.Line(1, "degree", absl::StrCat(topology.degree));
  }
  if (topology.radius != defaults.radius) {
    out.Line(1, "radius", WriteNumber(topology.radius));
  }
  if (!topology.edges.empty()) {
    out.Line(1, "edges", "");
    for (const auto& edge : topology.edges) out.Item(2, EdgeText(edge));
  }
  if (!topology.edge_sets.empty()) {
    out.Line(1, "edge_sets", "");
    for (const core::EdgeList& edges : topology.edge_sets) {
      std::vector<std::string> texts;
      for (const auto& edge : edges) texts.push_back(EdgeText(edge));
      out.Item(2, absl::StrCat("[", absl::StrJoin(texts, ", "), "]"));
    }
  }
  if (topology.directed) out.Line(1, "directed", "on");
  if (topology.every != 0) out.Line(1, "every", absl::StrCat(topology.every));
  out.Line(1, "weights", WriteText(topology.weights));
  if (!topology.matrix.empty()) {
    out.Line(1, "matrix", "");
    for (const std::vector<double>& row : topology.matrix) {
      std::vector<std::string> texts;
      for (const double value : row) texts.push_back(WriteNumber(value));
      out.Item(2, absl::StrCat("[", absl::StrJoin(texts, ", "), "]"));
    }
  }
}

void WriteStop(const core::StopRule& stop, Writer& out) {
  out.Line(0, "stop", "");
  out.Line(1, "steps", absl::StrCat(stop.steps));
  if (stop.time != absl::InfiniteDuration()) {
    out.Line(1, "time", WriteDuration(stop.time));
  }
  if (stop.loss_below != 0) {
    out.Line(1, "loss_below", WriteNumber(stop.loss_below));
  }
  if (stop.accuracy_above != 0) {
    out.Line(1, "accuracy_above", WriteNumber(stop.accuracy_above));
  }
}

}  // namespace

absl::StatusOr<core::RunPlan> ParsePlan(absl::string_view text,
                                        absl::string_view file_name) {
  DFL_ASSIGN_OR_RETURN(
      const core::CheckedPlan checked,
      ParseCheckedPlan(text, file_name, [](core::RunPlan&) {}));
  return *checked.plan;
}

absl::StatusOr<core::CheckedPlan> ParseCheckedPlan(
    absl::string_view text, absl::string_view file_name,
    absl::FunctionRef<void(core::RunPlan&)> complete) {
  if (text.size() > kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":1: plan: found ", text.size(),
                     " bytes; allowed: at most ", kMaxPlanBytes));
  }
  DFL_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file_name));
  return PlanReader(file_name).Read(root, {}, complete);
}

absl::StatusOr<core::RunPlan> ReadPlan(const YamlNode& root,
                                       absl::string_view file_name,
                                       const PlanSurroundings& around) {
  DFL_ASSIGN_OR_RETURN(
      const core::CheckedPlan checked,
      PlanReader(file_name).Read(root, around, [](core::RunPlan&) {}));
  return *checked.plan;
}

std::string WritePlan(const core::RunPlan& plan) {
  Writer out;
  if (plan.version != 0) out.Line(0, "version", absl::StrCat(plan.version));
  if (!plan.run_id.empty()) out.Line(0, "run", WriteText(plan.run_id));
  if (plan.seed != 0) out.Line(0, "seed", absl::StrCat(plan.seed));
  WriteMembers(plan, out);
  WriteModel(plan.model, out);
  out.Line(0, "batch_size", absl::StrCat(plan.batch_size));
  out.Line(0, "algorithm", "");
  out.Line(1, "name", WriteText(plan.algorithm.name));
  WriteKnobs(1, plan.algorithm.knobs, out);
  WriteTopology(plan.topology, out);
  out.Line(0, "codec", "");
  out.Line(1, "coordinates", core::ToString(plan.codec.format.coordinates));
  out.Line(1, "values", core::ToString(plan.codec.format.values));
  out.Line(1, "rate", WriteNumber(plan.codec.rate));
  if (plan.codec.mass != core::ValueType::kFp32) {
    out.Line(1, "mass", core::ToString(plan.codec.mass));
  }
  out.Line(0, "evaluation", "");
  out.Line(1, "every_steps", absl::StrCat(plan.evaluation.every_steps));
  out.Line(1, "examples", absl::StrCat(plan.evaluation.examples));
  WriteStop(plan.stop, out);
  out.Line(0, "deadline", "");
  out.Line(1, "exchange", WriteDuration(plan.deadline.exchange));
  if (!plan.nodes.empty()) {
    out.Line(0, "nodes", "");
    for (const auto& [node, overrides] : plan.nodes) {
      // A node without overrides is still there: it reads back the same.
      out.Line(1, WriteText(node.name()), "");
      WriteKnobs(2, overrides.knobs, out);
    }
  }
  return out.Take();
}

std::string PlanHash(const core::RunPlan& plan) {
  return Sha256Hex(WritePlan(plan));
}

}  // namespace dfl::config
