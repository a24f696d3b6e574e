#include "daemon/sim/scenario.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/knobs.h"
#include "daemon/sim/variants.h"

namespace dfl::sim {
namespace {

using config::YamlNode;
using config::YamlReader;

constexpr int64_t kMaxNodes = 100'000;
constexpr char kNetwork[] = "network";

// n00 .. n19: as many digits as the last one needs, so that their bytewise
// order is that of their numbers.
std::vector<core::MemberSpec> NumberedMembers(int64_t count) {
  const auto digits = static_cast<int>(absl::StrCat(count - 1).size());
  std::vector<core::MemberSpec> members;
  members.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    members.push_back({NodeId(absl::StrFormat("n%0*d", digits, i)), 0});
  }
  return members;
}

// Walks the network section. Names become places of members, so the members
// are read first and the rest after the plan.
class NetworkReader {
 public:
  NetworkReader(const YamlNode& root, absl::string_view file,
                Scenario& scenario)
      : root_(root), yaml_(file), scenario_(scenario) {}

  // The members that `nodes` makes; none when it leaves them to the plan.
  std::vector<core::MemberSpec> Members() {
    section_ =
        yaml_.Section(root_, "", kNetwork,
                      {"nodes", "problem", "links", "paths", "compute",
                       "events", "metrics_every", "settled_below", "limit"});
    if (section_ == nullptr) return {};
    const YamlNode* nodes = section_->Find("nodes");
    if (nodes == nullptr) return {};
    const std::string path = "network.nodes";
    if (const YamlNode* members = root_.Find("members")) {
      yaml_.Add(nodes->line, path,
                absl::StrCat("the plan names its members in line ",
                             members->key_line, "; keep one of the two"));
      return {};
    }
    if (nodes->kind == YamlNode::Kind::kList) return NamedMembers();
    int64_t count = 0;
    yaml_.Scalar(
        *section_, kNetwork, "nodes",
        [](absl::string_view text) -> std::optional<int64_t> {
          const std::optional<int64_t> number = config::ReadInteger(text);
          if (!number.has_value() || *number < 1 || *number > kMaxNodes) {
            return std::nullopt;
          }
          return number;
        },
        absl::StrCat("how many, from 1 to ", kMaxNodes, ", or a list of names"),
        count);
    return count > 0 ? NumberedMembers(count) : std::vector<core::MemberSpec>();
  }

  absl::Status status() const {
    const absl::Status status = yaml_.status();
    return status.ok() ? data_status_ : status;
  }

  // All the rest; scenario.plan is read.
  void ReadRest() {
    if (section_ == nullptr) {
      yaml_.Add(1, kNetwork,
                "missing; a scenario is a plan and a section `network` that "
                "says what it runs on");
      return;
    }
    for (const core::MemberSpec& member : scenario_.plan.members) {
      names_.push_back(member.node.name());
    }
    data_status_ =
        ReadProblem(root_, *section_, yaml_, scenario_.plan, scenario_.problem);
    if (const YamlNode* links =
            yaml_.Section(*section_, kNetwork, "links",
                          {"delay", "jitter", "rate", "loss"})) {
      ReadPath(*links, "network.links", scenario_.links);
    }
    ReadPaths();
    ReadCompute();
    yaml_.List(*section_, kNetwork, "events",
               "a list such as [{at: 2s, crash: a, for: 3s}]",
               [this](const YamlNode& node, const std::string& path) {
                 ReadEvent(node, path);
               });
    ReadEnd();
  }

 private:
  std::vector<core::MemberSpec> NamedMembers() {
    std::vector<core::MemberSpec> members;
    yaml_.List(*section_, kNetwork, "nodes", "names",
               [&](const YamlNode& node, const std::string& path) {
                 const std::optional<NodeId> name = yaml_.Name(node, path);
                 if (name.has_value()) members.push_back({*name, 0});
               });
    std::sort(members.begin(), members.end(),
              [](const core::MemberSpec& a, const core::MemberSpec& b) {
                return a.node < b.node;
              });
    const auto twice = std::adjacent_find(
        members.begin(), members.end(),
        [](const core::MemberSpec& a, const core::MemberSpec& b) {
          return a.node == b.node;
        });
    if (twice != members.end()) {
      yaml_.Add(section_->Find("nodes")->line, "network.nodes",
                absl::StrCat("found ", config::Quoted(twice->node.name()),
                             " twice; allowed: each name once"));
      members.clear();
    }
    return members;
  }

  // A scalar that must be > 0, or >= 0.
  void Count(const YamlNode& section, absl::string_view path,
             absl::string_view key, int64_t& out) {
    yaml_.Scalar(
        section, path, key,
        [](absl::string_view text) -> std::optional<int64_t> {
          const std::optional<int64_t> number = config::ReadInteger(text);
          return number.has_value() && *number >= 1 ? number : std::nullopt;
        },
        "an integer >= 1", out);
  }
  void Time(const YamlNode& section, absl::string_view path,
            absl::string_view key, absl::Duration least, absl::Duration& out) {
    yaml_.Scalar(
        section, path, key,
        [least](absl::string_view text) -> std::optional<absl::Duration> {
          const std::optional<absl::Duration> time = config::ReadDuration(text);
          if (!time.has_value() || *time < least ||
              *time == absl::InfiniteDuration()) {
            return std::nullopt;
          }
          return time;
        },
        absl::StrCat("a duration ",
                     least > absl::ZeroDuration() ? "above 0" : "from 0s on",
                     " with its unit, such as 500ms, 2s or 1h30m"),
        out);
  }
  // A number of which `fits` holds.
  void Bounded(const YamlNode& section, absl::string_view path,
               absl::string_view key, bool (*fits)(double),
               absl::string_view allowed, double& out) {
    yaml_.Scalar(
        section, path, key,
        [fits](absl::string_view text) -> std::optional<double> {
          const std::optional<double> number = config::ReadNumber(text);
          return number.has_value() && fits(*number) ? number : std::nullopt;
        },
        allowed, out);
  }
  void AtLeastZero(const YamlNode& section, absl::string_view path,
                   absl::string_view key, double& out) {
    Bounded(
        section, path, key, [](double x) { return x >= 0; }, "a number >= 0",
        out);
  }
  void AboveZero(const YamlNode& section, absl::string_view path,
                 absl::string_view key, double& out) {
    Bounded(
        section, path, key, [](double x) { return x > 0; }, "a number > 0",
        out);
  }
  void Probability(const YamlNode& section, absl::string_view path,
                   absl::string_view key, double& out) {
    Bounded(
        section, path, key, [](double x) { return x >= 0 && x < 1; },
        "a probability in [0, 1)", out);
  }

  // The place of the member that is named; -1 (and a mistake) when it is none.
  int64_t Member(const YamlNode& node, const std::string& path) {
    const std::optional<NodeId> name = yaml_.Name(node, path);
    if (!name.has_value()) return -1;
    return Place(name->name(), node.line, path);
  }
  int64_t Place(const std::string& name, int line, const std::string& path) {
    const auto found = std::lower_bound(names_.begin(), names_.end(), name);
    if (found != names_.end() && *found == name) {
      return found - names_.begin();
    }
    const std::string nearest = core::NearestName(name, names_);
    const size_t shown = std::min<size_t>(names_.size(), 8);
    yaml_.Add(
        line, path,
        absl::StrCat(
            "found ", config::Quoted(name), ", which is no node",
            nearest.empty() ? ""
                            : absl::StrCat("; did you mean ", nearest, "?"),
            " allowed: ",
            absl::StrJoin(names_.begin(),
                          names_.begin() + static_cast<int64_t>(shown), ", "),
            shown < names_.size()
                ? absl::StrCat(" and ", names_.size() - shown, " more")
                : ""));
    return -1;
  }

  // Two different members.
  std::optional<std::pair<int64_t, int64_t>> Pair(const YamlNode& node,
                                                  const std::string& path) {
    if (node.kind != YamlNode::Kind::kList || node.items.size() != 2) {
      yaml_.Wrong(node, path, "a pair of nodes such as [a, b]");
      return std::nullopt;
    }
    const int64_t a = Member(node.items[0], path);
    const int64_t b = Member(node.items[1], path);
    if (a < 0 || b < 0) return std::nullopt;
    if (a == b) {
      yaml_.Add(node.line, path,
                absl::StrCat("found ", names_[static_cast<size_t>(a)],
                             " at both ends; allowed: two nodes"));
      return std::nullopt;
    }
    return std::make_pair(a, b);
  }

  void ReadPath(const YamlNode& section, const std::string& path,
                simports::SimPath& out) {
    Time(section, path, "delay", absl::ZeroDuration(), out.delay);
    Time(section, path, "jitter", absl::ZeroDuration(), out.jitter);
    yaml_.Scalar(
        section, path, "rate",
        [](absl::string_view text) -> std::optional<double> {
          const std::optional<uint64_t> bytes = config::ReadSize(text);
          if (!bytes.has_value()) return std::nullopt;
          return static_cast<double>(*bytes);
        },
        "bytes a second, such as 125kB or 10MB; 0: no limit", out.rate);
    Probability(section, path, "loss", out.reset_probability);
  }

  void ReadPaths() {
    yaml_.List(*section_, kNetwork, "paths",
               "a list such as [{between: [a, b], delay: 80ms}]",
               [this](const YamlNode& node, const std::string& path) {
                 if (!yaml_.IsSection(node, path)) return;
                 yaml_.TakeKeys(node, path,
                                {"between", "delay", "jitter", "rate", "loss"});
                 PathSpec spec;
                 spec.path = scenario_.links;
                 ReadPath(node, path, spec.path);
                 const YamlNode* between = node.Find("between");
                 if (between == nullptr) {
                   yaml_.Add(node.line, path, "`between: [a, b]` is missing");
                   return;
                 }
                 const auto pair =
                     Pair(*between, YamlReader::Join(path, "between"));
                 if (!pair.has_value()) return;
                 spec.a = pair->first;
                 spec.b = pair->second;
                 scenario_.paths.push_back(spec);
               });
  }

  void ReadCompute() {
    const YamlNode* section = yaml_.Section(*section_, kNetwork, "compute",
                                            {"time", "extra", "factor"});
    if (section == nullptr) return;
    const std::string path = "network.compute";
    // In no time at all a network would never get anywhere.
    Time(*section, path, "time", absl::Nanoseconds(1), scenario_.compute.time);
    Time(*section, path, "extra", absl::ZeroDuration(),
         scenario_.compute.extra);
    const YamlNode* factors = section->Find("factor");
    const std::string key = YamlReader::Join(path, "factor");
    if (factors == nullptr || !yaml_.IsSection(*factors, key)) return;
    for (const YamlNode& item : factors->items) {
      const std::string own = YamlReader::Join(key, item.key);
      const int64_t place = Place(item.key, item.key_line, key);
      double factor = 1;
      AboveZero(*factors, key, item.key, factor);
      if (place >= 0) scenario_.compute.factor[place] = factor;
    }
  }

  void ReadEvent(const YamlNode& node, const std::string& path) {
    if (!yaml_.IsSection(node, path)) return;
    static const std::vector<std::string>* const kKinds =
        new std::vector<std::string>{"crash",     "join", "cut", "black_hole",
                                     "partition", "slow", "loss"};
    std::vector<std::string> keys = {"at", "for", "factor"};
    keys.insert(keys.end(), kKinds->begin(), kKinds->end());
    yaml_.TakeKeys(node, path, keys);
    NetworkEvent event;
    if (node.Find("at") == nullptr) {
      yaml_.Add(node.line, path, "`at` is missing; e.g. {at: 2s, crash: a}");
      return;
    }
    Time(node, path, "at", absl::ZeroDuration(), event.at);
    Time(node, path, "for", absl::Nanoseconds(1), event.lasts);
    const YamlNode* what = nullptr;
    int64_t given = 0;
    for (size_t i = 0; i < kKinds->size(); ++i) {
      const YamlNode* found = node.Find((*kKinds)[i]);
      if (found == nullptr) continue;
      ++given;
      what = found;
      event.kind = static_cast<NetworkEvent::Kind>(i);
    }
    if (given != 1) {
      yaml_.Add(node.line, path,
                absl::StrCat("found ", given,
                             " things that happen; allowed: "
                             "one of ",
                             absl::StrJoin(*kKinds, ", ")));
      return;
    }
    const std::string own = YamlReader::Join(path, what->key);
    if (event.kind != NetworkEvent::Kind::kSlow && node.Find("factor")) {
      yaml_.Add(node.line, path, "`factor` goes with slow alone");
    }
    switch (event.kind) {
      case NetworkEvent::Kind::kJoin:
        if (node.Find("for") != nullptr) {
          yaml_.Add(node.line, path,
                    "`for` goes with what ends by itself, not with join; let "
                    "the node crash later");
        }
        [[fallthrough]];
      case NetworkEvent::Kind::kCrash: {
        const int64_t place = Member(*what, own);
        if (place < 0) return;
        event.members = {place};
        break;
      }
      case NetworkEvent::Kind::kCut:
      case NetworkEvent::Kind::kBlackHole: {
        const auto pair = Pair(*what, own);
        if (!pair.has_value()) return;
        event.members = {pair->first, pair->second};
        break;
      }
      case NetworkEvent::Kind::kPartition:
        if (!ReadGroups(*what, own, event.group)) return;
        break;
      case NetworkEvent::Kind::kSlow: {
        const int64_t place = Member(*what, own);
        if (place < 0) return;
        event.members = {place};
        if (node.Find("factor") == nullptr) {
          yaml_.Add(node.line, path,
                    "`factor` is missing; e.g. {at: 2s, slow: a, factor: 4}");
          return;
        }
        AboveZero(node, path, "factor", event.amount);
        break;
      }
      case NetworkEvent::Kind::kLoss:
        Probability(node, path, "loss", event.amount);
        break;
    }
    scenario_.events.push_back(std::move(event));
  }

  // Nodes that no group names form one of their own.
  bool ReadGroups(const YamlNode& node, const std::string& path,
                  std::vector<int64_t>& group) {
    constexpr char kAllowed[] = "a list of groups such as [[a, b], [c]]";
    if (node.kind != YamlNode::Kind::kList) {
      yaml_.Wrong(node, path, kAllowed);
      return false;
    }
    const auto groups = static_cast<int64_t>(node.items.size());
    group.assign(names_.size(), groups);
    for (int64_t g = 0; g < groups; ++g) {
      const YamlNode& list = node.items[static_cast<size_t>(g)];
      const std::string own = YamlReader::Element(path, static_cast<size_t>(g));
      if (list.kind != YamlNode::Kind::kList) {
        yaml_.Wrong(list, own, kAllowed);
        return false;
      }
      for (const YamlNode& name : list.items) {
        const int64_t place = Member(name, own);
        if (place < 0) return false;
        int64_t& its = group[static_cast<size_t>(place)];
        if (its != groups) {
          yaml_.Add(name.line, own,
                    absl::StrCat("found ", name.text,
                                 " a second time; allowed: each node in one "
                                 "group"));
          return false;
        }
        its = g;
      }
    }
    return true;
  }

  void ReadEnd() {
    const core::StopRule& stop = scenario_.plan.stop;
    scenario_.metrics_every =
        std::max<int64_t>(1, stop.steps > 0 ? stop.steps / 100 : 10);
    Count(*section_, kNetwork, "metrics_every", scenario_.metrics_every);
    AtLeastZero(*section_, kNetwork, "settled_below", scenario_.settled_below);
    Time(*section_, kNetwork, "limit", absl::Nanoseconds(1), scenario_.limit);
    std::vector<bool> late(names_.size(), false);
    for (const NetworkEvent& event : scenario_.events) {
      if (event.kind == NetworkEvent::Kind::kJoin) {
        late[static_cast<size_t>(event.members[0])] = true;
      }
    }
    if (std::find(late.begin(), late.end(), false) == late.end()) {
      yaml_.Add(section_->key_line, "network.events",
                "every node joins later; allowed: at least one that is there "
                "from the beginning");
    }
    const bool ends = stop.steps > 0 || stop.time < absl::InfiniteDuration() ||
                      stop.loss_below > 0 || scenario_.settled_below > 0 ||
                      section_->Find("limit") != nullptr;
    if (!ends) {
      yaml_.Add(section_->key_line, "stop",
                "missing; a simulation ends by stop.steps, stop.time, "
                "stop.loss_below, network.settled_below or network.limit");
    }
  }

  const YamlNode& root_;
  YamlReader yaml_;
  absl::Status data_status_;  // of network.problem
  Scenario& scenario_;
  const YamlNode* section_ = nullptr;
  std::vector<std::string> names_;  // of the members, sorted
};

}  // namespace

absl::StatusOr<Scenario> ParseScenario(absl::string_view text,
                                       absl::string_view file_name,
                                       uint64_t seed,
                                       absl::string_view variant) {
  if (text.size() > config::kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":1: found ", text.size(),
                     " bytes; allowed: at most ", config::kMaxPlanBytes));
  }
  DFL_ASSIGN_OR_RETURN(YamlNode document, config::ParseYaml(text, file_name));
  DFL_ASSIGN_OR_RETURN(const YamlNode root,
                       ApplyVariant(std::move(document), file_name, variant));
  Scenario scenario;
  scenario.file = std::string(file_name);
  scenario.text = std::string(text);
  scenario.variant = std::string(variant);
  NetworkReader network(root, file_name, scenario);
  config::PlanSurroundings around;
  around.keys = {kNetwork};
  around.members = network.Members();
  DFL_RETURN_IF_ERROR(network.status());
  DFL_ASSIGN_OR_RETURN(scenario.plan,
                       config::ReadPlan(root, file_name, around));
  if (seed != 0) scenario.plan.seed = seed;
  if (scenario.plan.seed == 0) scenario.plan.seed = 1;
  if (scenario.plan.run_id.empty()) scenario.plan.run_id = "simulated";
  scenario.plan.version = std::max<uint64_t>(1, scenario.plan.version);
  network.ReadRest();
  DFL_RETURN_IF_ERROR(network.status());
  const bool data = scenario.problem.kind == ProblemSpec::Kind::kData;
  if (data && !scenario.problem.partition_seed_written) {
    scenario.problem.data.partition.seed = scenario.plan.seed;
  }
  for (core::MemberSpec& member : scenario.plan.members) {
    member.rows = data ? 1 : scenario.problem.rows;
  }
  // Again with what was filled in: another seed is another random graph.
  const absl::Status valid = core::ValidatePlan(scenario.plan);
  if (!valid.ok()) return Annotate(valid, file_name);
  return scenario;
}

}  // namespace dfl::sim
