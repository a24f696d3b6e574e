// dflctl top: the network on a full screen, live.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/network/selection.h"
#include "cli/network/survey.h"
#include "cli/top/full_screen.h"
#include "cli/top/top_view.h"
#include "daemon/base/names.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kKeyWait = absl::Milliseconds(100);

struct TopCommand {
  std::string interval = "1s";
  std::string sort = "node";
  std::string filter;
  bool once = false;
  client::MemberSelection selection;
};

absl::StatusOr<Survey> Ask(Context& context, const TopCommand& command,
                           const std::function<bool()>& go_on) {
  return AskOne<Survey>(context, [&](client::ControlClient& daemon) {
    return TakeSurvey(daemon, command.selection, AnswerTime(context.timeout()),
                      go_on);
  });
}

// Surveys from a thread of its own, so that keys are answered at once.
// Thread-safe.
class SurveyFeed {
 public:
  SurveyFeed(Context& context, const TopCommand& command,
             absl::Duration interval)
      : thread_([this, &context, &command, interval] {
          Run(context, command, interval);
        }) {}
  ~SurveyFeed() {
    {
      const absl::MutexLock lock(&mutex_);
      stopped_ = true;
      changed_.SignalAll();
    }
    thread_.join();
  }
  SurveyFeed(const SurveyFeed&) = delete;
  SurveyFeed& operator=(const SurveyFeed&) = delete;

  // The newest one that was not taken yet.
  std::optional<absl::StatusOr<Survey>> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(newest_, std::nullopt);
  }

 private:
  void Run(Context& context, const TopCommand& command,
           absl::Duration interval) {
    while (!stopped()) {
      const absl::Time next = SteadyNow() + interval;
      absl::StatusOr<Survey> survey =
          Ask(context, command, [this] { return !stopped(); });
      const absl::MutexLock lock(&mutex_);
      newest_ = std::move(survey);
      while (!stopped_ && SteadyNow() < next) {
        changed_.WaitFor(&mutex_, next - SteadyNow());
      }
    }
  }
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return stopped_;
  }

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  std::optional<absl::StatusOr<Survey>> newest_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

ExitCode Once(Context& context, const TopCommand& command, TopView view) {
  const absl::StatusOr<Survey> survey =
      Ask(context, command, [] { return true; });
  if (!survey.ok()) return context.Fail(survey.status());
  view.Take(survey);
  Json json{{"node", survey->node}, {"members", Json::array()}};
  for (const TopRow& row : view.Rows()) {
    json["members"].push_back(ToJsonValue(row));
  }
  context.Print(json, [&] { return view.Table(); });
  const std::vector<std::string> failures = Failures(*survey);
  for (const std::string& failure : failures) context.Say(failure);
  return failures.empty() ? kOk : kPartlyDone;
}

ExitCode OnScreen(Context& context, const TopCommand& command,
                  absl::Duration interval, TopView view) {
  constexpr size_t kTitles = 2;
  const InterruptScope interrupt;
  absl::Status first;
  bool answered = false;
  {
    FullScreen screen(STDIN_FILENO, context.io().out, context.color());
    SurveyFeed feed(context, command, interval);
    std::vector<std::string> drawn;
    while (!InterruptScope::Requested() && context.io().out.good()) {
      if (auto survey = feed.Take(); survey.has_value()) {
        view.Take(*survey);
        // Who never answered is an error of the caller.
        first = survey->status();
        answered = answered || first.ok();
        if (!answered) break;
      }
      const ScreenSize size = screen.Size();
      std::vector<std::string> lines = view.Lines(size.width, size.height);
      if (lines != drawn) screen.Draw(lines, kTitles);
      drawn = std::move(lines);
      const std::optional<int> key = screen.ReadKey(kKeyWait);
      if (key.has_value() && !view.OnKey(*key)) break;
    }
  }
  return answered || first.ok() ? kOk : context.Fail(first);
}

ExitCode Top(Context& context, const TopCommand& command) {
  absl::Duration interval;
  if (!absl::ParseDuration(command.interval, &interval) ||
      interval < absl::Milliseconds(200) || interval > absl::Hours(1)) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--interval: \"", command.interval,
                     "\" is not in 200ms to 1h; allowed: 500ms, 2s, 1m")));
  }
  const std::vector<std::string>& sorts = TopSortNames();
  if (std::find(sorts.begin(), sorts.end(), command.sort) == sorts.end()) {
    return context.Usage(UnknownNameError("--sort", command.sort, sorts));
  }
  TopView view(context.targets()[0], command.sort, command.filter);
  if (command.once) return Once(context, command, std::move(view));
  if (!context.text()) {
    return context.Usage(absl::InvalidArgumentError(
        "a full screen is for people; give --once for one document, or see "
        "`dflctl watch -o jsonl`"));
  }
  if (!context.io().in_is_terminal || !context.io().out_is_terminal) {
    return context.Usage(absl::InvalidArgumentError(
        "this is no terminal; give --once, or see `dflctl watch`"));
  }
  return OnScreen(context, command, interval, std::move(view));
}

}  // namespace

void AddTop(CLI::App& app, Chosen& chosen) {
  auto parsed = std::make_shared<TopCommand>();
  CLI::App* command =
      AddCommand(app, "top", "All members on a full screen, live: q leaves it",
                 "--sort loss --filter gateway");
  command->add_option("--interval", parsed->interval, "Between two updates")
      ->capture_default_str();
  command
      ->add_option("--sort", parsed->sort,
                   absl::StrCat("By ", absl::StrJoin(TopSortNames(), ", ")))
      ->capture_default_str();
  command->add_option("--filter", parsed->filter,
                      "Only nodes whose name, state or phase has this text");
  command->add_flag("--once", parsed->once,
                    "Print the table, or with -o json a document, and end");
  AddSelection(*command, parsed->selection);
  command->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) { return Top(context, *parsed); };
  });
}

}  // namespace dfl::cli
