// dflctl debug bundle: what a helper needs, in one file, without secrets.
#include <sys/utsname.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/network/survey.h"
#include "cli/status_json.h"
#include "cli/support/archive.h"
#include "cli/support/redact.h"
#include "daemon/base/atomic_file.h"

namespace dfl::cli {
namespace {

// Collects files, and takes secrets out of each.
class Bundle {
 public:
  void Add(const std::string& name, const std::string& content) {
    Redacted redacted = Redact(content);
    removed_ += redacted.count;
    files_.push_back({name, std::move(redacted.text)});
  }
  // What `get` gives; where it fails, why.
  template <typename T>
  void AddAnswer(const std::string& name, const absl::StatusOr<T>& answer,
                 const std::function<std::string(const T&)>& text) {
    Add(name, answer.ok()
                  ? text(*answer)
                  : absl::StrCat("there is none: ", answer.status().ToString(),
                                 "\n"));
  }

  const std::vector<ArchiveEntry>& files() const { return files_; }
  int64_t removed() const { return removed_; }

 private:
  std::vector<ArchiveEntry> files_;
  int64_t removed_ = 0;
};

std::string SystemText() {
  utsname name{};
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.version, " ",
                      name.machine, "\n");
}

std::string LogText(const client::LogList& list) {
  std::string text;
  for (const client::LogLine& line : list.lines) {
    absl::StrAppend(&text,
                    absl::FormatTime(absl::RFC3339_full,
                                     absl::FromUnixNanos(line.unix_nanos),
                                     absl::UTCTimeZone()),
                    " ", client::ToString(line.level), " ", line.event, ": ",
                    line.text, "\n");
  }
  return text;
}

std::string SettingsText(const std::vector<client::Setting>& settings) {
  std::string text;
  for (const client::Setting& setting : settings) {
    absl::StrAppend(&text, setting.key, ": ", setting.value, "  # ",
                    setting.origin, "\n");
  }
  return text;
}

std::string EventsText(const client::EventList& list) {
  std::string text;
  for (const client::Event& event : list.events) {
    absl::StrAppend(&text,
                    absl::FormatTime(absl::RFC3339_full,
                                     absl::FromUnixNanos(event.unix_nanos),
                                     absl::UTCTimeZone()),
                    " ", event.kind, " step ", event.step, ": ", event.text,
                    "\n");
  }
  return text;
}

std::string DoctorText(const client::Diagnosis& diagnosis) {
  std::string text;
  for (const client::Finding& finding : diagnosis.findings) {
    absl::StrAppend(&text,
                    finding.kind == client::Finding::Kind::kOk ? "ok      "
                    : finding.kind == client::Finding::Kind::kWarning
                        ? "warning "
                        : "fault   ",
                    finding.check, ": ", finding.text,
                    finding.remedy.empty() ? "" : "; ", finding.remedy, "\n");
  }
  return text;
}

// Everything that one daemon tells, in files below `folder`.
void Collect(client::ControlClient& daemon, const std::string& folder,
             absl::Duration within, Bundle& bundle) {
  bundle.AddAnswer<client::Version>(
      folder + "version.txt", daemon.Version(),
      [](const client::Version& version) {
        std::string text =
            absl::StrCat(version.node, " ", version.version, "\n");
        for (const std::string& library : version.libraries) {
          absl::StrAppend(&text, library, "\n");
        }
        return text;
      });
  bundle.AddAnswer<client::DaemonStatus>(
      folder + "status.json", daemon.Status(),
      [](const client::DaemonStatus& status) {
        return ToJson(ToJsonValue(status));
      });
  bundle.AddAnswer<client::Diagnosis>(folder + "doctor.txt", daemon.Diagnose(),
                                      DoctorText);
  bundle.AddAnswer<client::LogList>(folder + "log.txt", daemon.Log({}),
                                    LogText);
  bundle.AddAnswer<client::EventList>(folder + "events.txt", daemon.Events({}),
                                      EventsText);
  bundle.AddAnswer<std::string>(folder + "metrics.txt", daemon.Metrics(),
                                [](const std::string& text) { return text; });
  bundle.AddAnswer<std::vector<client::Setting>>(
      folder + "settings.txt", daemon.Settings(), SettingsText);
  bundle.AddAnswer<client::PlanDocument>(
      folder + "plan.yaml", daemon.Plan(),
      [](const client::PlanDocument& plan) { return plan.yaml; });
  bundle.AddAnswer<Survey>(folder + "members.json",
                           TakeSurvey(daemon, {}, within),
                           [](const Survey& survey) {
                             Json list = Json::array();
                             for (const MemberReport& report : survey.members) {
                               list.push_back(ToJsonValue(report));
                             }
                             return ToJson(list);
                           });
}

struct BundleCommand {
  std::string file;
};

ExitCode MakeBundle(Context& context, const BundleCommand& command) {
  const absl::Time now = absl::Now();
  const std::string stem = absl::StrCat(
      "dfl-debug-",
      absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  Bundle bundle;
  bundle.Add(stem + "/system.txt",
             absl::StrCat("dflctl ", DFL_VERSION, "\n", SystemText()));
  bool reached = false;
  for (size_t i = 0; i < context.targets().size(); ++i) {
    const std::string folder = absl::StrCat(stem, "/target-", i + 1, "/");
    bundle.Add(folder + "target.txt", context.targets()[i] + "\n");
    client::ControlClient& daemon = context.Client(i);
    const auto version = daemon.Version();
    if (!version.ok()) {
      context.Warn(version.status().message());
      bundle.Add(folder + "unreachable.txt", version.status().ToString());
      continue;
    }
    reached = true;
    Collect(daemon, folder, std::min(context.timeout(), absl::Seconds(5)),
            bundle);
  }
  const absl::StatusOr<std::string> packed = MakeArchive(bundle.files(), now);
  if (!packed.ok()) return context.Fail(packed.status());
  const std::string file =
      command.file.empty() ? stem + ".tar.gz" : command.file;
  const absl::Status written = AtomicFile::Write(file, *packed);
  if (!written.ok()) return context.Fail(written);
  Json names = Json::array();
  for (const ArchiveEntry& entry : bundle.files()) names.push_back(entry.name);
  context.Print(Json{{"file", file},
                     {"bytes", packed->size()},
                     {"removed", bundle.removed()},
                     {"entries", names}},
                [&] {
                  return absl::StrCat(
                      file, ": ", bundle.files().size(), " files, ",
                      HumanBytes(static_cast<int64_t>(packed->size())), "; ",
                      bundle.removed(),
                      " secrets were taken out. Look into it before you give "
                      "it away.\n");
                });
  return reached ? kOk : kUnreachable;
}

}  // namespace

void AddDebug(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(app, "debug", "For whoever helps to find a fault",
                              "bundle --file dfl-debug.tar.gz");
  noun->require_subcommand(1);
  auto parsed = std::make_shared<BundleCommand>();
  CLI::App* bundle = AddCommand(
      *noun, "bundle",
      "Writes what the targets tell (status, log, events, metrics, settings, "
      "plan, members, checks) into one file, without secrets",
      "--file dfl-debug.tar.gz");
  bundle->add_option("--file", parsed->file,
                     "Where to; default: dfl-debug-TIME.tar.gz here");
  bundle->callback([&chosen, parsed] {
    chosen = [parsed](Context& context) {
      return MakeBundle(context, *parsed);
    };
  });
}

}  // namespace dfl::cli
