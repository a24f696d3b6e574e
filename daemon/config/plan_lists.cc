#include "daemon/config/plan_lists.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/base/ids.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/plan/participants.h"

namespace dfl::config {
namespace {

constexpr char kNodeKnobs[] = "knobs";
constexpr char kFixed[] = "fixed";
constexpr char kAll[] = "all";
constexpr char kParticipants[] =
    "all, a list of names and labels such as [box-1, site=north], or {fixed: "
    "[box-1, box-2]}";
constexpr char kSelector[] =
    "the name of a node, or a label such as site=north";
constexpr char kEdges[] = "a list of pairs of names such as [[a, b], [b, c]]";
constexpr char kEdgeSets[] =
    "a list of lists of pairs of names such as [[[a, b]], [[b, c]]]";
constexpr char kMatrix[] = "a list of rows of numbers, one a member";

// An edge, "[a, b]".
void ReadEdge(const YamlNode& node, const std::string& path, YamlReader& yaml,
              core::EdgeList& out) {
  if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) {
    yaml.Wrong(node, path, kEdges);
    return;
  }
  const std::optional<NodeId> a = yaml.Name(node.items[0], path);
  const std::optional<NodeId> b = yaml.Name(node.items[1], path);
  if (a.has_value() && b.has_value()) out.emplace_back(*a, *b);
}

std::string EdgeText(const std::pair<NodeId, NodeId>& edge) {
  const std::string names[] = {edge.first.name(), edge.second.name()};
  return WriteList(names);
}

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

std::string KnobValueText(const core::KnobValue& value) {
  if (const std::string* text = std::get_if<std::string>(&value)) {
    return WriteText(*text);
  }
  return core::ToString(value);
}

// A member, "name" or "{name: ..., rows: ...}". Null, and a mistake, if it is
// none.
std::optional<core::MemberSpec> ReadMember(const YamlNode& node,
                                           const std::string& path,
                                           YamlReader& yaml) {
  core::MemberSpec member;
  const YamlNode* name = &node;
  if (node.kind == YamlNode::Kind::kMap) {
    yaml.TakeKeys(node, path, {"name", "rows"});
    name = node.Find("name");
    if (name == nullptr) {
      yaml.Add(node.line, path, "its name is missing");
      return std::nullopt;
    }
    yaml.Integer(node, path, "rows", member.rows);
  }
  const std::optional<NodeId> id = yaml.Name(*name, path);
  if (!id.has_value()) return std::nullopt;
  member.node = *id;
  return member;
}

// Reads a fixed set. Later errors name it "members", sorted.
void ReadFixed(const YamlNode& section, const std::string& path,
               absl::string_view key, PlanReading& in) {
  std::vector<core::MemberSpec>& members = in.plan.members;
  members.clear();  // those of the surroundings
  in.plan.participants = {};
  std::map<NodeId, int> first_line;
  in.yaml.List(
      section, path, key, "a list of names, or of {name: ..., rows: ...}",
      [&](const YamlNode& node, const std::string& element) {
        const std::optional<core::MemberSpec> member =
            ReadMember(node, element, in.yaml);
        if (!member.has_value()) return;
        const auto [earlier, fresh] =
            first_line.emplace(member->node, node.line);
        if (!fresh) {
          in.yaml.Add(
              node.line, element,
              absl::StrCat("found ", Quoted(member->node.name()),
                           " a second time, first in line ", earlier->second,
                           "; allowed: each name once"));
          return;
        }
        members.push_back(*member);
      });
  std::sort(members.begin(), members.end(),
            [](const core::MemberSpec& a, const core::MemberSpec& b) {
              return a.node < b.node;
            });
  in.yaml.Move(kFormerMembers, section.Find(key)->key_line);
  for (size_t i = 0; i < members.size(); ++i) {
    in.yaml.Move(YamlReader::Element(kFormerMembers, i),
                 first_line[members[i].node]);
  }
}

// Reads a list of names and labels.
void ReadSelectors(const YamlNode& section, const std::string& path,
                   absl::string_view key, PlanReading& in) {
  std::map<std::string, int> lines;
  in.yaml.List(
      section, path, key, kParticipants,
      [&](const YamlNode& node, const std::string& element) {
        if (node.kind != YamlNode::Kind::kScalar) {
          in.yaml.Wrong(node, element, kSelector);
          return;
        }
        const absl::Status status = core::CheckSelector(node.text);
        if (!status.ok()) {
          in.yaml.Add(node.line, element,
                      absl::StrCat("found ", status.message(),
                                   "; allowed: ", kSelector));
          return;
        }
        const auto [earlier, fresh] = lines.emplace(node.text, node.line);
        if (!fresh) {
          in.yaml.Add(node.line, element,
                      absl::StrCat("found ", Quoted(node.text),
                                   " a second time, first in line ",
                                   earlier->second, "; allowed: each once"));
        }
      });
  for (const auto& [selector, line] : lines) {
    in.plan.participants.selectors.push_back(selector);
  }
}

std::string MemberText(const core::MemberSpec& member) {
  const std::string name = WriteText(member.node.name());
  return member.rows == 0
             ? name
             : absl::StrCat("{name: ", name, ", rows: ", member.rows, "}");
}

}  // namespace

void ReadParticipants(const YamlNode& section, const std::string& path,
                      absl::string_view key, PlanReading& in) {
  using Kind = core::ParticipantsSpec::Kind;
  const YamlNode* node = section.Find(key);
  const std::string own = YamlReader::Join(path, key);
  const YamlNode* former = section.Find(kFormerMembers);
  if (node == nullptr) {
    if (former != nullptr) ReadFixed(section, path, kFormerMembers, in);
    return;
  }
  if (former != nullptr) {
    in.yaml.Add(node->key_line, own,
                absl::StrCat("found beside members in line ", former->key_line,
                             ", which is the same as {fixed: ...}; keep one "
                             "of the two"));
    return;
  }
  switch (node->kind) {
    case YamlNode::Kind::kList:
      in.plan.members.clear();
      in.plan.participants.kind = Kind::kSelected;
      ReadSelectors(section, path, key, in);
      return;
    case YamlNode::Kind::kMap:
      in.yaml.TakeKeys(*node, own, {kFixed});
      if (node->Find(kFixed) == nullptr) {
        in.yaml.Wrong(*node, own, kParticipants);
        return;
      }
      ReadFixed(*node, own, kFixed, in);
      return;
    default:
      if (node->text != kAll) {
        in.yaml.Wrong(*node, own, kParticipants);
        return;
      }
      in.plan.members.clear();
      in.plan.participants.kind = Kind::kAll;
  }
}

void WriteParticipants(const core::RunPlan& plan, int depth,
                       absl::string_view key, PlanWriter& out) {
  using Kind = core::ParticipantsSpec::Kind;
  switch (plan.participants.kind) {
    case Kind::kAll:
      out.Line(depth, key, kAll);
      return;
    case Kind::kSelected:
      out.Line(depth, key, "");
      for (const std::string& selector : plan.participants.selectors) {
        // A label's sign needs no quotes.
        const bool label = selector.find('=') != std::string::npos;
        out.Item(depth + 1, label ? selector : WriteText(selector));
      }
      return;
    case Kind::kFixed:
      if (plan.members.empty()) return;
      out.Line(depth, key, "");
      out.Line(depth + 1, kFixed, "");
      for (const core::MemberSpec& member : plan.members) {
        out.Item(depth + 2, MemberText(member));
      }
  }
}

void ReadEdges(const YamlNode& section, const std::string& path,
               absl::string_view key, PlanReading& in) {
  in.yaml.List(section, path, key, kEdges,
               [&](const YamlNode& node, const std::string& element) {
                 ReadEdge(node, element, in.yaml, in.plan.topology.edges);
               });
}

void WriteEdges(const core::RunPlan& plan, int depth, absl::string_view key,
                PlanWriter& out) {
  if (plan.topology.edges.empty()) return;
  out.Line(depth, key, "");
  for (const auto& edge : plan.topology.edges) {
    out.Item(depth + 1, EdgeText(edge));
  }
}

void ReadEdgeSets(const YamlNode& section, const std::string& path,
                  absl::string_view key, PlanReading& in) {
  in.yaml.List(section, path, key, kEdgeSets,
               [&](const YamlNode& node, const std::string& element) {
                 if (node.kind != YamlNode::Kind::kList) {
                   in.yaml.Wrong(node, element, kEdgeSets);
                   return;
                 }
                 core::EdgeList edges;
                 for (size_t e = 0; e < node.items.size(); ++e) {
                   const std::string edge = YamlReader::Element(element, e);
                   in.yaml.Remember(edge, node.items[e].line);
                   ReadEdge(node.items[e], edge, in.yaml, edges);
                 }
                 in.plan.topology.edge_sets.push_back(std::move(edges));
               });
}

void WriteEdgeSets(const core::RunPlan& plan, int depth, absl::string_view key,
                   PlanWriter& out) {
  if (plan.topology.edge_sets.empty()) return;
  out.Line(depth, key, "");
  for (const core::EdgeList& edges : plan.topology.edge_sets) {
    std::vector<std::string> texts;
    texts.reserve(edges.size());
    for (const auto& edge : edges) texts.push_back(EdgeText(edge));
    out.Item(depth + 1, absl::StrCat("[", absl::StrJoin(texts, ", "), "]"));
  }
}

void ReadMatrix(const YamlNode& section, const std::string& path,
                absl::string_view key, PlanReading& in) {
  in.yaml.List(section, path, key, kMatrix,
               [&](const YamlNode& node, const std::string& element) {
                 if (node.kind != YamlNode::Kind::kList) {
                   in.yaml.Wrong(node, element, kMatrix);
                   return;
                 }
                 std::vector<double> row;
                 for (const YamlNode& item : node.items) {
                   const std::optional<double> number =
                       item.kind == YamlNode::Kind::kScalar
                           ? ReadNumber(item.text)
                           : std::nullopt;
                   if (!number.has_value()) {
                     in.yaml.Wrong(item, element, kMatrix);
                     return;
                   }
                   row.push_back(*number);
                 }
                 in.plan.topology.matrix.push_back(std::move(row));
               });
}

void WriteMatrix(const core::RunPlan& plan, int depth, absl::string_view key,
                 PlanWriter& out) {
  if (plan.topology.matrix.empty()) return;
  out.Line(depth, key, "");
  for (const std::vector<double>& row : plan.topology.matrix) {
    std::vector<std::string> texts;
    texts.reserve(row.size());
    for (const double value : row) texts.push_back(WriteNumber(value));
    out.Item(depth + 1, absl::StrCat("[", absl::StrJoin(texts, ", "), "]"));
  }
}

void ReadKnobs(const YamlNode& section, const std::string& path,
               absl::string_view key, core::KnobValues& out, PlanReading& in) {
  const YamlNode* node = section.Find(key);
  const std::string own = YamlReader::Join(path, key);
  if (node == nullptr || in.algorithm == nullptr) return;
  if (!in.yaml.IsSection(*node, own)) return;
  std::vector<std::string> names;
  for (const core::KnobSpec& spec : in.algorithm->knobs) {
    names.push_back(spec.name);
  }
  in.yaml.TakeKeys(*node, own, names);
  for (const YamlNode& item : node->items) {
    const auto spec = std::find_if(
        in.algorithm->knobs.begin(), in.algorithm->knobs.end(),
        [&item](const core::KnobSpec& s) { return s.name == item.key; });
    if (spec == in.algorithm->knobs.end()) continue;  // told by TakeKeys
    const std::string knob = YamlReader::Join(own, item.key);
    const std::optional<std::string> text = KnobText(item);
    if (!text.has_value()) {
      in.yaml.Wrong(item, knob, spec->AllowedText());
      continue;
    }
    absl::StatusOr<core::KnobValue> value = spec->Parse(*text);
    if (!value.ok()) {
      absl::string_view why = value.status().message();
      absl::ConsumePrefix(&why, absl::StrCat(item.key, ": "));
      in.yaml.Add(item.line, knob, why);
      continue;
    }
    out[item.key] = *std::move(value);
  }
}

void WriteKnobs(const core::KnobValues& knobs, int depth, absl::string_view key,
                PlanWriter& out) {
  if (knobs.empty()) return;
  out.Line(depth, key, "");
  for (const auto& [name, value] : knobs) {
    out.Line(depth + 1, WriteText(name), KnobValueText(value));
  }
}

void ReadNodes(const YamlNode& section, const std::string& path,
               absl::string_view key, PlanReading& in) {
  const YamlNode* nodes = section.Find(key);
  const std::string own = YamlReader::Join(path, key);
  if (nodes == nullptr || !in.yaml.IsSection(*nodes, own)) return;
  for (const YamlNode& item : nodes->items) {
    const std::string node = YamlReader::Join(own, item.key);
    in.yaml.Remember(node, item.key_line);
    const absl::Status status = ValidateNodeName(item.key);
    if (!status.ok()) {
      in.yaml.Add(
          item.key_line, own,
          absl::StrCat("found ", Quoted(item.key), ": ", status.message(),
                       "; allowed: the name of a member"));
      continue;
    }
    if (!in.yaml.IsSection(item, node)) continue;
    in.yaml.TakeKeys(item, node, {kNodeKnobs});
    core::NodeOverrides overrides;
    ReadKnobs(item, node, kNodeKnobs, overrides.knobs, in);
    in.plan.nodes[NodeId(item.key)] = std::move(overrides);
  }
}

void WriteNodes(const core::RunPlan& plan, int depth, absl::string_view key,
                PlanWriter& out) {
  if (plan.nodes.empty()) return;
  out.Line(depth, key, "");
  for (const auto& [node, overrides] : plan.nodes) {
    // A node without overrides is still there: it reads back the same.
    out.Line(depth + 1, WriteText(node.name()), "");
    WriteKnobs(overrides.knobs, depth + 2, kNodeKnobs, out);
  }
}

}  // namespace dfl::config
