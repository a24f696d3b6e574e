#include "daemon/sim/plan_changes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/sim/variants.h"

namespace dfl::sim {
namespace {

using config::YamlNode;

// Whether a list of names, such as an edge, names one of them.
bool NamesOneOf(const std::set<std::string>& names, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return names.count(node.text) > 0;
  if (node.kind == YamlNode::Kind::kMap) {  // of a member
    const YamlNode* name = node.Find("name");
    return name != nullptr && NamesOneOf(names, *name);
  }
  return std::any_of(
      node.items.begin(), node.items.end(),
      [&](const YamlNode& item) { return NamesOneOf(names, item); });
}

void RemoveItems(YamlNode& list,
                 const std::function<bool(const YamlNode&)>& goes) {
  list.items.erase(std::remove_if(list.items.begin(), list.items.end(), goes),
                   list.items.end());
}

YamlNode* FindIn(YamlNode& section, absl::string_view key) {
  for (YamlNode& item : section.items) {
    if (item.key == key) return &item;
  }
  return nullptr;
}

// The document of a plan without these members, their edges and their own
// entries.
YamlNode WithoutMembers(YamlNode document, const std::set<std::string>& gone) {
  const auto named = [&](const YamlNode& node) {
    return NamesOneOf(gone, node);
  };
  YamlNode* members = FindIn(document, "members");
  if (YamlNode* participants = FindIn(document, "participants")) {
    members = FindIn(*participants, "fixed");
  }
  if (members != nullptr) RemoveItems(*members, named);
  if (YamlNode* nodes = FindIn(document, "nodes")) {
    RemoveItems(*nodes,
                [&](const YamlNode& node) { return gone.count(node.key) > 0; });
  }
  if (YamlNode* topology = FindIn(document, "topology")) {
    if (YamlNode* edges = FindIn(*topology, "edges")) {
      RemoveItems(*edges, named);
    }
    if (YamlNode* sets = FindIn(*topology, "edge_sets")) {
      for (YamlNode& edges : sets->items) RemoveItems(edges, named);
    }
  }
  return document;
}

std::vector<core::MemberSpec> Remaining(std::vector<core::MemberSpec> members,
                                        const std::set<std::string>& gone) {
  members.erase(std::remove_if(members.begin(), members.end(),
                               [&](const core::MemberSpec& member) {
                                 return gone.count(member.node.name()) > 0;
                               }),
                members.end());
  return members;
}

// The plans one after the other.
class Plans {
 public:
  Plans(const YamlNode& root, const core::RunPlan& first,
        const config::PlanSurroundings& around,
        const core::Catalogue& catalogue, std::string file)
      : first_(first),
        around_(around),
        catalogue_(catalogue),
        file_(std::move(file)) {
    version_ = first.version;
    // Without what is around the plan, such as a thousand events: the document
    // is copied for each of them.
    document_.kind = root.kind;
    std::copy_if(root.items.begin(), root.items.end(),
                 std::back_inserter(document_.items),
                 [&](const YamlNode& item) {
                   return std::find(around.keys.begin(), around.keys.end(),
                                    item.key) == around.keys.end();
                 });
  }

  // Whether the event changes the plan.
  bool Take(const WrittenEvent& written) {
    const NetworkEvent& event = written.event;
    switch (event.kind) {
      case NetworkEvent::Kind::kChange:
        MergeSections(written.change, document_);
        return true;
      case NetworkEvent::Kind::kLeave:
        // Where nodes find out who is there the plan stays as it is.
        if (around_.all_take_part) return false;
        return gone_.insert(NameOf(event)).second;
      case NetworkEvent::Kind::kJoin:
        return gone_.erase(NameOf(event)) > 0;
      default:
        return false;
    }
  }

  absl::StatusOr<core::RunPlan> Next() {
    config::PlanSurroundings around = around_;
    around.members = Remaining(around_.members, gone_);
    DFL_ASSIGN_OR_RETURN(core::RunPlan plan,
                         config::ReadPlan(WithoutMembers(document_, gone_),
                                          file_, around, catalogue_));
    plan.version = ++version_;
    plan.run_id = first_.run_id;
    plan.seed = first_.seed;
    plan.model = first_.model;
    plan.members = Remaining(first_.members, gone_);
    // Again with what was filled in.
    const absl::Status valid = core::ValidatePlan(plan, catalogue_);
    if (!valid.ok()) return Annotate(valid, file_);
    return plan;
  }

 private:
  const std::string& NameOf(const NetworkEvent& event) const {
    return first_.members[static_cast<size_t>(event.members[0])].node.name();
  }

  YamlNode document_;
  const core::RunPlan& first_;
  const config::PlanSurroundings& around_;
  const core::Catalogue& catalogue_;
  const std::string file_;
  std::set<std::string> gone_;
  uint64_t version_ = 0;
};

}  // namespace

std::vector<std::string> ChangeableKeys() {
  return {"algorithm",  "topology", "codec",    "batch_size",
          "evaluation", "stop",     "deadline", "nodes"};
}

void DerivePlans(const YamlNode& root, const core::RunPlan& first,
                 const config::PlanSurroundings& around,
                 const core::Catalogue& catalogue, config::YamlReader& yaml,
                 std::vector<WrittenEvent>& events) {
  Plans plans(root, first, around, catalogue, yaml.file());
  for (WrittenEvent* written : InTime(events)) {
    if (!plans.Take(*written)) continue;
    absl::StatusOr<core::RunPlan> plan = plans.Next();
    if (!plan.ok()) {
      yaml.Add(written->line, written->path,
               absl::StrCat("the plan that it makes is wrong: ",
                            plan.status().message()));
      return;
    }
    written->event.plan =
        std::make_shared<const core::RunPlan>(*std::move(plan));
  }
}

}  // namespace dfl::sim
