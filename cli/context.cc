#include "cli/context.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cli/console.h"
#include "cli/contexts.h"
#include "cli/identity.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/default_places.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::cli {
namespace {

constexpr size_t kMaxAtOnce = 32;
constexpr size_t kMaxTargetsFile = 1 << 20;

std::string Variable(const Io& io, const std::string& name) {
  const auto found = io.environment.find(name);
  return found == io.environment.end() ? "" : found->second;
}

absl::StatusOr<Output> ParseOutput(const std::string& text) {
  const std::pair<const char*, Output> outputs[] = {
      {"table", Output::kTable},
      {"wide", Output::kWide},
      {"json", Output::kJson},
      {"jsonl", Output::kJsonLines},
      {"yaml", Output::kYaml}};
  std::vector<std::string> known;
  for (const auto& [name, output] : outputs) {
    if (text == name) return output;
    known.emplace_back(name);
  }
  return UnknownNameError("--output", text, known);
}

// The lists of documents that are printed item by item as lines of JSON.
constexpr const char* kLists[] = {"members", "events",   "pings",
                                  "lines",   "contexts", "algorithms",
                                  "targets"};

std::string JsonLines(const Json& document) {
  const Json* list = document.is_array() ? &document : nullptr;
  for (const char* name : kLists) {
    if (list != nullptr || !document.is_object()) break;
    const auto found = document.find(name);
    const bool documents =
        found != document.end() && found->is_array() &&
        std::all_of(found->begin(), found->end(),
                    [](const Json& item) { return item.is_object(); });
    if (documents) list = &*found;
  }
  if (list == nullptr) return ToJsonLine(document);
  std::string lines;
  for (const Json& item : *list) lines += ToJsonLine(item);
  return lines;
}

// One target a line; '#' begins a comment.
absl::StatusOr<std::vector<std::string>> ReadTargets(const std::string& file) {
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(file, kMaxTargetsFile));
  std::vector<std::string> targets;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) targets.emplace_back(line);
  }
  if (targets.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     ": names no target; write one a line, e.g. unix:/run/dfld/"
                     "control.sock or box-2:7601"));
  }
  return targets;
}

std::string DefaultTarget(const Io& io) {
  const std::vector<std::string> candidates =
      config::ControlSocketCandidates(io.environment, io.is_root);
  for (const std::string& path : candidates) {
    if (access(path.c_str(), F_OK) == 0) return absl::StrCat("unix:", path);
  }
  return absl::StrCat("unix:", candidates.empty() ? "/run/dfld/control.sock"
                                                  : candidates.front());
}

// Where to go, and as whom.
struct Place {
  std::vector<std::string> targets;
  std::string identity;     // "": by FindIdentityFolder
  const char* origin = "";  // of the targets, where no option names them
};

// The context that counts where no target is named; an empty one: none does.
absl::StatusOr<NamedContext> ContextInUse(const Globals& globals,
                                          const Io& io) {
  DFL_ASSIGN_OR_RETURN(const Contexts contexts, Contexts::Load(io.environment));
  if (!globals.context.empty()) {
    return contexts.Find("--context", globals.context);
  }
  const std::string variable = Variable(io, "DFLCTL_CONTEXT");
  if (!variable.empty()) return contexts.Find("DFLCTL_CONTEXT", variable);
  if (contexts.current().empty()) return NamedContext();
  return contexts.Find("the current context", contexts.current());
}

absl::StatusOr<Place> FindPlace(const Globals& globals, const Io& io) {
  Place place;
  place.identity = globals.identity;
  place.targets = globals.targets;
  if (!globals.targets_file.empty()) {
    DFL_ASSIGN_OR_RETURN(const std::vector<std::string> more,
                         ReadTargets(globals.targets_file));
    place.targets.insert(place.targets.end(), more.begin(), more.end());
  }
  const bool asked = !globals.context.empty();
  if (place.targets.empty() && !asked) {
    const std::string variable = Variable(io, "DFLCTL_TARGET");
    place.targets =
        absl::StrSplit(variable, absl::ByAnyChar(", "), absl::SkipEmpty());
    if (!place.targets.empty()) place.origin = "DFLCTL_TARGET";
  }
  if (!globals.offline && (asked || place.targets.empty())) {
    DFL_ASSIGN_OR_RETURN(const NamedContext context, ContextInUse(globals, io));
    if (place.targets.empty() && !context.targets.empty()) {
      place.targets = context.targets;
      place.origin = "context";
    }
    if (place.identity.empty() &&
        (asked || Variable(io, "DFLCTL_IDENTITY").empty())) {
      place.identity = context.identity;
    }
  }
  if (place.targets.empty()) place.targets.push_back(DefaultTarget(io));
  return place;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if ((!absl::ParseDuration(text, &timeout) &&
       !absl::ParseDuration(absl::StrCat(text, "s"), &timeout)) ||
      timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout: \"", text,
                     "\" is no time above zero; allowed: 500ms, 10s, 2m, ..."));
  }
  return timeout;
}

const char* ContextHelp() {
  return "Which daemons, the first that is given:\n"
         "  1. --target, --all\n"
         "  2. --context NAME\n"
         "  3. $DFLCTL_TARGET\n"
         "  4. the context of $DFLCTL_CONTEXT\n"
         "  5. the current context, see `dflctl context use`\n"
         "  6. this machine's socket\n"
         "Whose certificate: --identity, that of --context, "
         "$DFLCTL_IDENTITY, that\n"
         "of the context in use, yours below ~/.config/dfl.";
}

absl::StatusOr<std::unique_ptr<Context>> Context::Create(const Globals& globals,
                                                         Io& io) {
  std::unique_ptr<Context> context(new Context(globals, io));
  DFL_ASSIGN_OR_RETURN(context->output_, ParseOutput(globals.output));
  DFL_ASSIGN_OR_RETURN(context->timeout_, ParseTimeout(globals.timeout));
  context->color_ = io.out_is_terminal && !globals.no_color &&
                    Variable(io, "NO_COLOR").empty() &&
                    Variable(io, "TERM") != "dumb";
  DFL_ASSIGN_OR_RETURN(Place place, FindPlace(globals, io));
  context->identity_ = place.identity;
  client::ClientOptions options;
  options.timeout = context->timeout_;
  options.insecure = globals.insecure;
  options.identity =
      [environment = io.environment,
       option = place.identity]() -> absl::StatusOr<client::ClientIdentity> {
    DFL_ASSIGN_OR_RETURN(const std::string folder,
                         FindIdentityFolder(environment, option));
    return client::ReadIdentity(folder);
  };
  for (const std::string& target : place.targets) {
    auto connected = client::ControlClient::Connect(target, options);
    if (!connected.ok()) {
      return *place.origin == '\0' ? connected.status()
                                   : Annotate(connected.status(), place.origin);
    }
    std::unique_ptr<client::ControlClient> client = *std::move(connected);
    const std::string& full = client->target();
    const auto& have = context->targets_;
    if (std::find(have.begin(), have.end(), full) != have.end()) continue;
    context->targets_.push_back(full);
    context->clients_.push_back(std::move(client));
  }
  return context;
}

absl::StatusOr<tls::Credentials> Context::Identity() const {
  DFL_ASSIGN_OR_RETURN(const std::string folder,
                       FindIdentityFolder(io_.environment, identity_));
  return LoadIdentity(folder, absl::Now());
}

void Context::Say(absl::string_view line) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StripSuffix(line, "\n"), '\n');
  for (const std::string& part : lines) {
    io_.err << "dflctl: " << Printable(part) << "\n";
  }
}

void Context::Warn(absl::string_view line) {
  if (!warned_.emplace(line).second) return;
  Say(absl::StrCat("warning: ", line));
}

void Context::Print(const Json& json,
                    const std::function<std::string()>& table) {
  switch (output_) {
    case Output::kJson:
      io_.out << ToJson(json);
      break;
    case Output::kJsonLines:
      io_.out << JsonLines(json);
      break;
    case Output::kYaml:
      io_.out << ToYaml(json);
      break;
    case Output::kTable:
    case Output::kWide:
      io_.out << table();
      break;
  }
  io_.out.flush();
}

ExitCode Context::Fail(const absl::Status& status) {
  Say(status.message().empty() ? absl::StatusCodeToString(status.code())
                               : std::string(status.message()));
  return ExitCodeOf(status);
}

ExitCode Context::Usage(const absl::Status& status) {
  Fail(status);
  return kUsage;
}

Json Context::TargetJson(const std::string& target,
                         const absl::Status& status) {
  Json entry{{"target", target}, {"ok", status.ok()}};
  if (!status.ok()) entry["error"] = ErrorJson(status);
  return entry;
}

Json Context::ErrorJson(const absl::Status& status) {
  const ExitCode code = ExitCodeOf(status);
  return Json{{"code", Name(code)},
              {"exit_code", static_cast<int>(code)},
              {"message", std::string(status.message())}};
}

ExitCode Context::ConcludeAll(
    const std::vector<std::pair<std::string, absl::Status>>& ends) {
  ExitCode first = kOk;
  size_t failed = 0;
  for (const auto& [target, status] : ends) {
    if (status.ok()) continue;
    if (failed++ == 0) first = ExitCodeOf(status);
    const std::string text(status.message());
    // Errors of the client begin with the target; the daemon's don't.
    Say(absl::StartsWith(text, target) ? text
                                       : absl::StrCat(target, ": ", text));
  }
  if (failed == 0) return kOk;
  return failed < ends.size() ? kPartlyDone : first;
}

absl::StatusOr<client::ControlClient*> Context::OneTarget() {
  if (clients_.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("this command speaks to one daemon, and ", clients_.size(),
                     " targets are given; give one --target"));
  }
  return clients_[0].get();
}

void Context::ForEachTarget(
    const std::function<void(size_t, client::ControlClient&)>& call) {
  if (clients_.size() == 1) return call(0, *clients_[0]);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::min(kMaxAtOnce, clients_.size()); ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < clients_.size(); i = next++) {
        call(i, *clients_[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dfl::cli
