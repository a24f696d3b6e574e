#include "cli/fleet_data.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/contract/agreement.h"

namespace dfl::cli {
namespace {

using core::InputScaling;

core::Task TaskOf(const std::string& name) {
  return name == core::TaskName(core::Task::kRegression)
             ? core::Task::kRegression
             : core::Task::kClassification;
}

InputScaling ScalingOf(const client::InputScaling& from) {
  using Per = InputScaling::Per;
  using Over = InputScaling::Over;
  InputScaling scaling;
  scaling.divide = from.divide;
  for (const Per per : {Per::kAll, Per::kChannel, Per::kFeature}) {
    if (from.per == core::PerName(per)) scaling.per = per;
  }
  for (const Over over : {Over::kNetwork, Over::kGiven}) {
    if (from.over == core::OverName(over)) scaling.over = over;
  }
  scaling.mean = from.mean;
  scaling.std = from.std;
  return scaling;
}

// A plan of which nothing but members, model and data is asked, so that it is
// small and quick to check.
std::string QuestionOf(const core::RunPlan& plan) {
  core::RunPlan question;
  question.seed = 1;
  question.participants = plan.participants;
  question.members = plan.members;
  question.algorithm.name = "local";
  question.model = plan.model;
  question.data = plan.data;
  return config::WritePlan(question);
}

// Whether the call failed on its way, so that the next one will fail too.
bool OfTransport(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status);
}

template <typename T>
bool MergeInto(const std::optional<T>& from, std::optional<T>& to) {
  if (!from.has_value()) return true;
  if (to.has_value()) return *to == *from;
  to = from;
  return true;
}

void WarnOfOthers(Context& context, const core::RunPlan& plan,
                  const std::set<std::string>& asked) {
  constexpr size_t kShown = 5;
  std::vector<std::string> others;
  for (const core::MemberSpec& member : plan.members) {
    if (asked.count(member.node.name()) == 0) {
      others.push_back(member.node.name());
    }
  }
  if (others.empty()) return;
  const size_t count = others.size();
  if (count > kShown) others.resize(kShown);
  context.Warn(absl::StrCat(
      "the plan's data section was fixed without asking ",
      absl::StrJoin(others, ", "),
      count > kShown ? absl::StrCat(" and ", count - kShown, " more") : "",
      "; where their data say otherwise, they refuse the plan or learn apart: "
      "apply to all members at once where you can"));
}

// What a person should look at, once for all targets that say it.
void WarnOfData(Context& context, const std::vector<client::NodeData>& data) {
  constexpr size_t kShown = 10;
  constexpr size_t kNames = 3;
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> nodes;  // by warning
  for (const client::NodeData& of_node : data) {
    for (const std::string& warning : of_node.warnings) {
      if (nodes[warning].empty()) order.push_back(warning);
      nodes[warning].push_back(of_node.node);
    }
  }
  for (size_t i = 0; i < order.size() && i < kShown; ++i) {
    std::vector<std::string> names = nodes[order[i]];
    const size_t count = names.size();
    if (count > kNames) names.resize(kNames);
    context.Warn(absl::StrCat(
        "the data of ", absl::StrJoin(names, ", "),
        count > kNames ? absl::StrCat(" and ", count - kNames, " more") : "",
        ": ", order[i]));
  }
  if (order.size() > kShown) {
    context.Warn(absl::StrCat(order.size() - kShown,
                              " more warnings about the data of these nodes: "
                              "dflctl data show"));
  }
}

// A node whose contract changes begins with another model.
void WarnOfNewContracts(Context& context, const core::RunPlan& plan,
                        const core::DataSection& fixed,
                        const std::vector<client::NodeData>& data) {
  for (const client::NodeData& of_node : data) {
    if (!of_node.contract.has_value()) continue;
    const absl::StatusOr<core::DataContract> next =
        core::Resolve(fixed, plan.model.classes, OfferOf(of_node));
    if (!next.ok()) continue;  // the node refuses the plan
    const std::vector<core::ContractField> fields = core::Differences(
        core::DigestOf(ContractOf(*of_node.contract)), core::DigestOf(*next));
    if (fields.empty()) continue;
    context.Warn(absl::StrCat(
        of_node.node, ": its data contract changes in ",
        absl::StrJoin(fields, ", ",
                      [](std::string* out, core::ContractField field) {
                        absl::StrAppend(out, core::FieldName(field));
                      }),
        ", so the model that it has is dropped: start it again after the "
        "apply (dflctl train start), and export the model before if you need "
        "it"));
  }
}

}  // namespace

core::DataOffer OfferOf(const client::NodeData& data) {
  core::DataOffer offer;
  offer.task = TaskOf(data.offer.task);
  offer.classes = data.offer.classes;
  offer.classes_stated = data.classes_stated;
  offer.class_places = data.class_places;
  offer.features = data.offer.features;
  offer.shape = data.offer.shape;
  offer.shape_is_at_least = data.shape_is_at_least;
  offer.input = ScalingOf(data.offer.input);
  offer.divide_stated = data.divide_stated;
  offer.standardise_stated = data.standardise_stated;
  offer.moments = {data.moments.count, data.moments.sums, data.moments.squares};
  offer.loss = data.offer.loss;
  offer.model = data.offer.model;
  return offer;
}

core::DataContract ContractOf(const client::DataContract& from) {
  return {TaskOf(from.task),     from.classes, from.features, from.shape,
          ScalingOf(from.input), from.loss,    from.model};
}

bool IsOpen(const core::DataSection& data) {
  const bool numbers_open =
      data.over == InputScaling::Over::kNetwork && data.mean.empty();
  const bool classes_open =
      data.task != core::Task::kRegression && !data.classes.has_value();
  return !data.task.has_value() || classes_open || !data.shape.has_value() ||
         !data.divide.has_value() || !data.per.has_value() || numbers_open ||
         data.model.empty();
}

core::DataSection KeepFixed(const core::RunPlan& plan,
                            const core::DataSection& held,
                            const core::ModelSpec& held_model) {
  core::DataSection data = plan.data;
  const int64_t classes = plan.model.classes;
  const bool regression = held.task == core::Task::kRegression;
  const bool task_fits =
      classes == core::kClassesOfData || (classes == 0) == regression;
  if (!data.task.has_value() && !data.classes.has_value() && task_fits) {
    data.task = held.task;
  }
  const bool classes_fit =
      held.classes.has_value() &&
      (classes == core::kClassesOfData ||
       classes == static_cast<int64_t>(held.classes->size()));
  if (!data.classes.has_value() && data.task == held.task && classes_fit) {
    data.classes = held.classes;
  }
  // Names and width go together.
  const bool same_columns =
      (!data.features.has_value() || data.features == held.features) &&
      (!data.shape.has_value() || data.shape == held.shape);
  if (same_columns) {
    data.features = held.features;
    data.shape = held.shape;
  }
  const bool same_division =
      !data.divide.has_value() || data.divide == held.divide;
  if (!data.divide.has_value()) data.divide = held.divide;
  const bool same_kind =
      !data.per.has_value() || (data.per == held.per && data.over == held.over);
  if (same_kind && data.mean.empty()) {
    data.per = held.per;
    data.over = held.over;
    // Numbers of features are of those features in that order, and pooled ones
    // of values after the division.
    const bool of_these =
        same_columns || held.per != InputScaling::Per::kFeature;
    if (of_these &&
        (same_division || held.over == InputScaling::Over::kGiven)) {
      data.mean = held.mean;
      data.std = held.std;
    }
  }
  if (data.model.empty() && plan.model == held_model) data.model = held.model;
  return data;
}

std::optional<core::DataSection> Merged(const core::DataSection& a,
                                        const core::DataSection& b) {
  core::DataSection out = a;
  const bool fits =
      MergeInto(b.task, out.task) && MergeInto(b.classes, out.classes) &&
      MergeInto(b.features, out.features) && MergeInto(b.shape, out.shape) &&
      MergeInto(b.divide, out.divide) && MergeInto(b.per, out.per) &&
      MergeInto(b.over, out.over);
  if (!fits) return std::nullopt;
  if (out.mean.empty()) {
    out.mean = b.mean;
    out.std = b.std;
  } else if (!b.mean.empty() && (b.mean != out.mean || b.std != out.std)) {
    return std::nullopt;
  }
  if (out.model.empty()) {
    out.model = b.model;
  } else if (!b.model.empty() && b.model != out.model) {
    return std::nullopt;
  }
  return out;
}

absl::StatusOr<FleetData> FixData(Context& context, const core::RunPlan& plan,
                                  const std::vector<std::string>& ask) {
  const std::string question = QuestionOf(plan);
  const std::set<std::string> wanted(ask.begin(), ask.end());
  const auto answers = context.AskAll<client::NodeData>(
      [&](client::ControlClient& daemon) -> absl::StatusOr<client::NodeData> {
        if (wanted.count(daemon.target()) == 0) {
          return absl::CancelledError("not asked");
        }
        return daemon.Data(question);
      });
  FleetData fleet{plan.data, {}};
  std::vector<std::string> unfit;
  std::vector<std::string> silent;
  std::vector<core::NamedOffer> offers;
  std::vector<client::NodeData> said;
  std::set<std::string> asked;
  for (const auto& answer : answers) {
    const absl::Status status = answer.result.status();
    if (status.ok()) {
      const client::NodeData& data = *answer.result;
      // One daemon under two addresses counts once.
      if (!data.node.empty() && !asked.insert(data.node).second) continue;
      offers.push_back(
          {data.node.empty() ? answer.target : data.node, OfferOf(data)});
      said.push_back(data);
    } else if (absl::IsUnimplemented(status)) {
      context.Warn(absl::StrCat(
          answer.target,
          ": the daemon is older and does not say what its data are; they are "
          "not compared with the others'"));
    } else if (absl::IsDeadlineExceeded(status) ||
               absl::IsResourceExhausted(status)) {
      silent.push_back(absl::StrCat(answer.target, ": ", status.message()));
    } else if (absl::IsInvalidArgument(status)) {
      unfit.push_back(absl::StrCat(answer.target, ": ", status.message()));
    } else if (!absl::IsCancelled(status) && !OfTransport(status)) {
      fleet.refused[answer.target] = status;
    }
  }
  if (!unfit.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the plan does not fit the data of ", unfit.size(),
        unfit.size() == 1 ? " target" : " targets",
        ", so nothing was applied:\n", absl::StrJoin(unfit, "\n")));
  }
  WarnOfData(context, said);
  if (!silent.empty()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "not every target that was reached has said what its data are, so "
        "nothing was applied; give more time with --timeout, or name other "
        "targets:\n",
        absl::StrJoin(silent, "\n")));
  }
  if (offers.empty()) return fleet;
  absl::StatusOr<core::DataSection> fixed =
      core::Fix(plan.data, plan.model.classes, offers);
  if (!fixed.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        offers.size() == 1 ? "the node's data do not fit the plan"
                           : "the nodes do not mean the same by their data",
        ", so nothing was applied:\n", fixed.status().message()));
  }
  fleet.section = *std::move(fixed);
  if (fleet.section != plan.data) WarnOfOthers(context, plan, asked);
  WarnOfNewContracts(context, plan, fleet.section, said);
  return fleet;
}

}  // namespace dfl::cli
