// dflctl wait: until the network is as a script needs it.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network/selection.h"
#include "cli/network/survey.h"
#include "cli/network/wait_rule.h"
#include "daemon/base/status_macros.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr absl::Duration kLeastLook = absl::Milliseconds(100);
// A person is told what is still waited for, ever more seldom.
constexpr absl::Duration kFirstNews = absl::Seconds(2);
constexpr absl::Duration kMostBetweenNews = absl::Minutes(1);

struct WaitCommand {
  std::vector<std::string> rules;
  std::string timeout;
  client::MemberSelection selection;
};

// What is known of the network at one moment.
struct Look {
  Survey survey;
  client::PlanDocument plan;
};

absl::StatusOr<Look> LookAt(client::ControlClient& daemon,
                            const client::MemberSelection& selection,
                            const std::vector<WaitRule>& rules,
                            absl::Duration within) {
  const auto any = [&rules](auto wants) {
    return std::any_of(rules.begin(), rules.end(), wants);
  };
  Look look;
  if (any([](const WaitRule& rule) { return rule.needs_status(); })) {
    DFL_ASSIGN_OR_RETURN(look.survey, TakeSurvey(daemon, selection, within));
  } else {
    DFL_ASSIGN_OR_RETURN(const client::MemberTable table,
                         daemon.Members(selection));
    look.survey.node = table.node;
    for (const client::Member& member : table.members) {
      MemberReport report;
      report.member = member;
      look.survey.members.push_back(std::move(report));
    }
  }
  if (any([](const WaitRule& rule) {
        return rule.kind == WaitRule::Kind::kPlan;
      })) {
    DFL_ASSIGN_OR_RETURN(look.plan, daemon.Plan());
  }
  return look;
}

std::vector<Missing> AllUnmet(const std::vector<WaitRule>& rules,
                              const Look& look) {
  std::vector<Missing> all;
  for (const WaitRule& rule : rules) {
    for (Missing& missing : Unmet(rule, look.survey, look.plan)) {
      missing.why = absl::StrCat(rule.text, ": ", missing.node,
                                 missing.node.empty() ? "" : " ", missing.why);
      all.push_back(std::move(missing));
    }
  }
  return all;
}

// Whether a run that is waited for has ended in a way from which it does not
// get to "finished" by itself.
std::optional<ExitCode> GivenUp(const std::vector<WaitRule>& rules,
                                const Look& look) {
  const bool finished =
      std::any_of(rules.begin(), rules.end(), [](const WaitRule& rule) {
        return rule.kind == WaitRule::Kind::kPhase &&
               rule.phase == client::Phase::kFinished;
      });
  if (!finished) return std::nullopt;
  std::optional<ExitCode> end;
  for (const MemberReport& report : look.survey.members) {
    if (!report.status.ok()) continue;
    const client::Phase phase = report.status->node.phase;
    if (phase == client::Phase::kFailed) return kTrainingFailed;
    if (phase == client::Phase::kStopped) end = kStopped;
  }
  return end;
}

ExitCode Conclude(Context& context, absl::Duration waited,
                  const std::vector<WaitRule>& rules,
                  const std::vector<Missing>& missing, ExitCode code) {
  Json json{{"met", code == kOk},
            {"seconds", absl::ToDoubleSeconds(waited)},
            {"conditions", Json::array()},
            {"missing", Json::array()}};
  for (const WaitRule& rule : rules) json["conditions"].push_back(rule.text);
  for (const Missing& one : missing) {
    json["missing"].push_back(
        Json{{"node", one.node.empty() ? Json() : Json(one.node)},
             {"why", one.why}});
  }
  context.Print(json, [&] {
    return code == kOk
               ? absl::StrCat("met after ",
                              HumanSeconds(absl::ToDoubleSeconds(waited)), "\n")
               : std::string();
  });
  for (const Missing& one : missing) context.Say(one.why);
  if (code == kTimeout) {
    context.Say(absl::StrCat("not met after ",
                             HumanSeconds(absl::ToDoubleSeconds(waited))));
  }
  return code;
}

void SayStillWaiting(Context& context, absl::Duration waited,
                     const std::vector<Missing>& missing) {
  if (missing.empty()) return;
  context.Say(absl::StrCat(
      "not yet after ", HumanSeconds(absl::ToDoubleSeconds(waited)), ": ",
      missing[0].why,
      missing.size() == 1
          ? ""
          : absl::StrCat("; and ", missing.size() - 1, " more")));
}

absl::StatusOr<absl::Duration> LimitOf(const WaitCommand& command) {
  if (command.timeout.empty()) return absl::InfiniteDuration();
  return ParseTimeout(command.timeout);
}

ExitCode Wait(Context& context, const WaitCommand& command) {
  const absl::StatusOr<absl::Duration> limit = LimitOf(command);
  if (!limit.ok()) return context.Usage(limit.status());
  std::vector<WaitRule> rules;
  for (const std::string& text : command.rules) {
    const absl::StatusOr<WaitRule> rule = ParseWaitRule(text);
    if (!rule.ok()) return context.Usage(rule.status());
    rules.push_back(*rule);
  }
  const InterruptScope interrupt;
  const absl::Time start = SteadyNow();
  const absl::Time deadline = start + *limit;
  absl::Duration pause = kFirstPause;
  absl::Duration next_news = kFirstNews;
  bool answered = false;
  std::vector<Missing> missing;
  while (!InterruptScope::Requested()) {
    const absl::StatusOr<Look> look =
        AskOne<Look>(context, [&](client::ControlClient& daemon) {
          return LookAt(daemon, command.selection, rules,
                        std::min(AnswerTime(context.timeout()),
                                 std::max(deadline - SteadyNow(), kLeastLook)));
        });
    const absl::Duration waited = SteadyNow() - start;
    if (look.ok()) {
      answered = true;
      missing = AllUnmet(rules, *look);
      if (missing.empty()) return Conclude(context, waited, rules, {}, kOk);
      const std::optional<ExitCode> end = GivenUp(rules, *look);
      if (end.has_value()) {
        return Conclude(context, waited, rules, missing, *end);
      }
    } else if (absl::IsNotFound(look.status())) {
      // A member that is not there yet may come.
      answered = true;
      missing = {{"", std::string(look.status().message())}};
    } else if (!answered || !(absl::IsUnavailable(look.status()) ||
                              absl::IsDeadlineExceeded(look.status()))) {
      return context.Fail(look.status());
    } else {
      missing = {{"", std::string(look.status().message())}};
    }
    if (SteadyNow() >= deadline) {
      return Conclude(context, waited, rules, missing, kTimeout);
    }
    if (waited >= next_news) {
      SayStillWaiting(context, waited, missing);
      next_news += std::min(next_news, kMostBetweenNews);
    }
    absl::SleepFor(std::min(pause, deadline - SteadyNow()));
    pause = std::min(2 * pause, kLongestPause);
  }
  return Conclude(context, SteadyNow() - start, rules, missing, kFailed);
}

}  // namespace

void AddWait(CLI::App& app, Chosen& chosen) {
  auto parsed = std::make_shared<WaitCommand>();
  CLI::App* command = AddCommand(
      app, "wait", "Wait until the network is as it should be, 5 if it is not",
      "--for phase=finished --label site=north");
  command
      ->add_option("--for", parsed->rules,
                   "phase=finished or another phase, \"step>=N\", "
                   "\"members>=N\" or plan=adopted; of several all must hold")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--timeout", parsed->timeout,
                      "At most so long: 30s, 10m, 2h. Default: no limit");
  AddSelection(*command, parsed->selection);
  command->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Wait(context, *parsed); };
  });
}

}  // namespace dfl::cli
