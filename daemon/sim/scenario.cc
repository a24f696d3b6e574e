#include "daemon/sim/scenario.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/sim/extra_metrics.h"
#include "daemon/sim/network_event.h"
#include "daemon/sim/plan_changes.h"
#include "daemon/sim/section_reader.h"
#include "daemon/sim/variants.h"

namespace dfl::sim {
namespace {

using config::YamlNode;
using config::YamlReader;

constexpr auto kMaxNodes = static_cast<int64_t>(core::kMostPlanMembers);
constexpr char kNetwork[] = "network";

// n00 .. n19: as many digits as the last one needs, so that their bytewise
// order is that of their numbers.
std::vector<core::MemberSpec> NumberedMembers(int64_t count) {
  const auto digits = static_cast<int>(absl::StrCat(count - 1).size());
  std::vector<core::MemberSpec> members;
  members.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    members.push_back({.node = NodeId(absl::StrFormat("n%0*d", digits, i))});
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
                      {"nodes", "membership", "checkpoints", "problem", "links",
                       "paths", "compute", "hostile", "events", "plans",
                       "metrics_every", "metrics", "settled_below", "limit"});
    if (section_ == nullptr) return {};
    ReadMembership();
    yaml_.Scalar(
        *section_, kNetwork, "checkpoints",
        [](absl::string_view text) -> std::optional<bool> {
          if (text == "yes") return true;
          if (text == "no") return false;
          return std::nullopt;
        },
        "yes or no", scenario_.checkpoints);
    const YamlNode* nodes = section_->Find("nodes");
    if (nodes == nullptr) return {};
    const std::string path = "network.nodes";
    const YamlNode* members = root_.Find("members");
    if (const YamlNode* participants = root_.Find("participants")) {
      members = participants->Find("fixed");
    }
    if (members != nullptr) {
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

  // All the rest; scenario.plan is read. `algorithms`: of the whole document.
  void ReadRest(std::vector<std::string> algorithms) {
    if (section_ == nullptr) {
      yaml_.Add(1, kNetwork,
                "missing; a scenario is a plan and a section `network` that "
                "says what it runs on");
      return;
    }
    reader_.emplace(yaml_, scenario_.plan.members);
    data_status_ =
        ReadProblem(root_, *section_, yaml_, scenario_.plan, scenario_.problem);
    if (const YamlNode* links =
            yaml_.Section(*section_, kNetwork, "links",
                          {"delay", "jitter", "rate", "loss"})) {
      ReadPath(*links, "network.links", scenario_.links);
    }
    ReadPaths();
    ReadCompute();
    ReadHostile();
    written_ = ReadEvents(*section_, *reader_);
    yaml_.Scalar(
        *section_, kNetwork, "plans",
        [](absl::string_view text) -> std::optional<bool> {
          if (text == "gossip") return true;
          if (text == "given") return false;
          return std::nullopt;
        },
        "given or gossip", scenario_.plans_by_gossip);
    // One that is the default has no name in the document.
    if (algorithms.empty()) algorithms = {scenario_.plan.algorithm.name};
    scenario_.metrics =
        ReadMetrics(*section_, algorithms, *scenario_.catalogue, yaml_);
    ReadEnd();
  }

  // The events, with the plans that they make; the plan is complete.
  void FinishEvents(const config::PlanSurroundings& around) {
    DerivePlans(root_, scenario_.plan, around, *scenario_.catalogue, yaml_,
                written_);
    for (WrittenEvent& written : written_) {
      scenario_.events.push_back(std::move(written.event));
    }
  }

 private:
  void ReadMembership() {
    ports::Pace pace = ports::Pace::kLan;
    yaml_.Scalar(
        *section_, kNetwork, "membership",
        [](absl::string_view text) -> std::optional<ports::Pace> {
          for (const ports::Pace each :
               {ports::Pace::kLan, ports::Pace::kWan, ports::Pace::kCellular}) {
            if (text == ports::PaceName(each)) return each;
          }
          return std::nullopt;
        },
        "lan, wan or cellular", pace);
    if (section_->Find("membership") != nullptr) scenario_.membership = pace;
  }

  std::vector<core::MemberSpec> NamedMembers() {
    std::vector<core::MemberSpec> members;
    yaml_.List(*section_, kNetwork, "nodes", "names",
               [&](const YamlNode& node, const std::string& path) {
                 const std::optional<NodeId> name = yaml_.Name(node, path);
                 if (name.has_value()) members.push_back({.node = *name});
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

  void ReadPath(const YamlNode& section, const std::string& path,
                simports::SimPath& out) {
    reader_->Time(section, path, "delay", absl::ZeroDuration(), out.delay);
    reader_->Time(section, path, "jitter", absl::ZeroDuration(), out.jitter);
    yaml_.Scalar(
        section, path, "rate",
        [](absl::string_view text) -> std::optional<double> {
          const std::optional<uint64_t> bytes = config::ReadSize(text);
          if (!bytes.has_value()) return std::nullopt;
          return static_cast<double>(*bytes);
        },
        "bytes a second, such as 125kB or 10MB; 0: no limit", out.rate);
    reader_->Probability(section, path, "loss", out.reset_probability);
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
                     reader_->Pair(*between, YamlReader::Join(path, "between"));
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
    reader_->Time(*section, path, "time", absl::Nanoseconds(1),
                  scenario_.compute.time);
    reader_->Time(*section, path, "extra", absl::ZeroDuration(),
                  scenario_.compute.extra);
    const YamlNode* factors = section->Find("factor");
    const std::string key = YamlReader::Join(path, "factor");
    if (factors == nullptr || !yaml_.IsSection(*factors, key)) return;
    for (const YamlNode& item : factors->items) {
      const std::string own = YamlReader::Join(key, item.key);
      const int64_t place = reader_->Place(item.key, item.key_line, key);
      double factor = 1;
      yaml_.Value(
          item, own,
          [](absl::string_view text) -> std::optional<double> {
            const std::optional<double> number = config::ReadNumber(text);
            return number.has_value() && *number > 0 ? number : std::nullopt;
          },
          "a number > 0", factor);
      if (place >= 0) scenario_.compute.factor[place] = factor;
    }
  }

  void ReadHostile() {
    const YamlNode* section = yaml_.Section(*section_, kNetwork, "hostile",
                                            {"nodes", "attack", "factor"});
    if (section == nullptr) return;
    const std::string path = "network.hostile";
    HostileSpec& hostile = scenario_.hostile;
    yaml_.List(*section, path, "nodes", "names",
               [&](const YamlNode& node, const std::string& own) {
                 const int64_t place = reader_->Member(node, own);
                 if (place >= 0) hostile.nodes.push_back(place);
               });
    std::sort(hostile.nodes.begin(), hostile.nodes.end());
    if (hostile.nodes.size() >= reader_->names().size()) {
      yaml_.Add(section->key_line, YamlReader::Join(path, "nodes"),
                "every node is hostile; allowed: at least one that is not");
    }
    yaml_.Scalar(*section, path, "attack", ParseAttack, AttackNames(),
                 hostile.attack);
    double factor = 0;
    if (section->Find("factor") != nullptr) {
      reader_->AboveZero(*section, path, "factor", factor);
      hostile.factor = factor;
    }
    const bool labels = scenario_.problem.kind == ProblemSpec::Kind::kSoftmax ||
                        scenario_.problem.kind == ProblemSpec::Kind::kData;
    if (hostile.attack == Attack::kLabels && !labels) {
      yaml_.Add(section->key_line, YamlReader::Join(path, "attack"),
                "labels needs a problem that has some; allowed: "
                "network.problem.kind softmax or data");
    }
  }

  void ReadEnd() {
    const core::StopRule& stop = scenario_.plan.stop;
    // About a hundred rows, by what ends the run.
    scenario_.metrics_by_rounds = stop.rounds > 0 && stop.steps == 0 &&
                                  section_->Find("metrics_every") == nullptr;
    const int64_t limit =
        scenario_.metrics_by_rounds ? stop.rounds : stop.steps;
    scenario_.metrics_every =
        std::max<int64_t>(1, limit > 0 ? limit / 100 : 10);
    reader_->Count(*section_, kNetwork, "metrics_every",
                   scenario_.metrics_every);
    reader_->AtLeastZero(*section_, kNetwork, "settled_below",
                         scenario_.settled_below);
    reader_->Time(*section_, kNetwork, "limit", absl::Nanoseconds(1),
                  scenario_.limit);
    std::vector<bool> late(reader_->names().size(), false);
    for (const auto& [event, path, line, change] : written_) {
      if (event.kind == NetworkEvent::Kind::kJoin && event.first) {
        late[static_cast<size_t>(event.members[0])] = true;
      }
    }
    if (std::find(late.begin(), late.end(), false) == late.end()) {
      yaml_.Add(section_->key_line, "network.events",
                "every node joins later; allowed: at least one that is there "
                "from the beginning");
    }
    const bool ends = stop.steps > 0 || stop.rounds > 0 || stop.epochs > 0 ||
                      stop.time < absl::InfiniteDuration() ||
                      stop.loss_below > 0 || scenario_.settled_below > 0 ||
                      section_->Find("limit") != nullptr;
    if (!ends) {
      yaml_.Add(section_->key_line, "stop",
                "missing; a simulation ends by stop.steps, stop.rounds, "
                "stop.epochs, stop.time, stop.loss_below, "
                "network.settled_below or network.limit");
    }
  }

  const YamlNode& root_;
  YamlReader yaml_;
  absl::Status data_status_;  // of network.problem
  Scenario& scenario_;
  const YamlNode* section_ = nullptr;
  std::optional<SectionReader> reader_;  // once the members are known
  std::vector<WrittenEvent> written_;
};

}  // namespace

absl::StatusOr<Scenario> ParseScenario(absl::string_view text,
                                       absl::string_view file_name,
                                       uint64_t seed, absl::string_view variant,
                                       const core::Catalogue& catalogue) {
  if (text.size() > config::kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":1: found ", text.size(),
                     " bytes; allowed: at most ", config::kMaxPlanBytes));
  }
  DFL_ASSIGN_OR_RETURN(YamlNode document, config::ParseYaml(text, file_name));
  // A file's runs may be measured alike, and cells stay empty where a node runs
  // another algorithm.
  std::vector<std::string> algorithms = AlgorithmsNamed(document);
  DFL_ASSIGN_OR_RETURN(const YamlNode root,
                       ApplyVariant(std::move(document), file_name, variant));
  Scenario scenario;
  scenario.file = std::string(file_name);
  scenario.text = std::string(text);
  scenario.variant = std::string(variant);
  scenario.catalogue = &catalogue;
  NetworkReader network(root, file_name, scenario);
  config::PlanSurroundings around;
  around.keys = {kNetwork};
  around.members = network.Members();
  around.all_take_part = scenario.membership.has_value();
  DFL_RETURN_IF_ERROR(network.status());
  DFL_ASSIGN_OR_RETURN(scenario.plan,
                       config::ReadPlan(root, file_name, around, catalogue));
  if (seed != 0) scenario.plan.seed = seed;
  if (scenario.plan.seed == 0) scenario.plan.seed = 1;
  if (scenario.plan.run_id.empty()) scenario.plan.run_id = "simulated";
  scenario.plan.version = std::max<uint64_t>(1, scenario.plan.version);
  network.ReadRest(std::move(algorithms));
  DFL_RETURN_IF_ERROR(network.status());
  const bool data = scenario.problem.kind == ProblemSpec::Kind::kData;
  if (data && !scenario.problem.partition_seed_written) {
    scenario.problem.data.partition.seed = scenario.plan.seed;
  }
  for (core::MemberSpec& member : scenario.plan.members) {
    member.rows = data ? 1 : scenario.problem.rows;
  }
  // Again with what was filled in: another seed is another random graph.
  const absl::Status valid = core::ValidatePlan(scenario.plan, catalogue);
  if (!valid.ok()) return Annotate(valid, file_name);
  network.FinishEvents(around);
  DFL_RETURN_IF_ERROR(network.status());
  return scenario;
}

}  // namespace dfl::sim
