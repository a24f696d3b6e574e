#include "daemon/app/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/app/data_command.h"
#include "daemon/app/join_command.h"
#include "daemon/app/security.h"
#include "daemon/app/service/reload.h"
#include "daemon/app/service/service_manager.h"
#include "daemon/app/tree.h"
#include "daemon/app/version.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"

namespace dfl::app {
namespace {

constexpr absl::Duration kShutdownLimit = absl::Seconds(9);

void PrintError(const absl::Status& status) {
  std::cerr << "dfld: " << status.message() << "\n";
}

// Errors a person mends in files, not by waiting or by another start.
int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
      return kExitConfig;
    default:
      return kExitFailure;
  }
}

absl::StatusOr<config::LoadedSettings> LoadSettings(
    const config::DaemonCommandLine& line,
    const std::map<std::string, std::string>& environment) {
  DFL_ASSIGN_OR_RETURN(const config::SettingsSources sources,
                       config::GatherSources(line, environment));
  DFL_ASSIGN_OR_RETURN(config::LoadedSettings loaded,
                       config::LoadNodeSettings(sources));
  DFL_RETURN_IF_ERROR(config::CheckStartable(loaded));
  if (loaded.settings.security == config::Security::kTls) {
    DFL_RETURN_IF_ERROR(Security::CheckFiles(loaded.settings));
  }
  return loaded;
}

// Signals are taken by one thread with sigwait; every other thread, gRPC's and
// LibTorch's too, inherits the mask.
sigset_t BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return set;
}

const char* NameOf(int signal) {
  return signal == SIGTERM ? "SIGTERM" : "SIGINT";
}

// Ends the process by a signal that comes while it starts: reading data and
// building a model take long, and nothing is lost, for state is on disk.
class StartGuard {
 public:
  StartGuard(sigset_t signals, Logger& log)
      : thread_([this, signals, &log] {
          int got = 0;
          do {
            sigwait(&signals, &got);
          } while (got == SIGHUP && !done_.load());
          if (done_.load()) {
            got_ = got;
            return;
          }
          log.Warning("shutdown", absl::StrCat(NameOf(got),
                                               " while starting: ending at "
                                               "once"));
          signal(got, SIG_DFL);
          pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
          raise(got);
          _exit(128 + got);  // the first process of a container outlives it
        }) {}
  ~StartGuard() { End(); }
  StartGuard(const StartGuard&) = delete;
  StartGuard& operator=(const StartGuard&) = delete;

  // The start is over. Returns the signal that came with its end; 0: none.
  int End() {
    if (!thread_.joinable()) return 0;
    done_.store(true);
    pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
    return got_ == SIGHUP ? 0 : got_;
  }

 private:
  std::atomic<bool> done_{false};
  int got_ = 0;  // written before the thread ends
  std::thread thread_;
};

// Ends the process when taking down hangs, e.g. in a very long gradient.
class ShutdownGuard {
 public:
  ShutdownGuard(sigset_t signals, Logger& log)
      : thread_([this, signals, &log] {
          timespec wait = absl::ToTimespec(kShutdownLimit);
          const int got = sigtimedwait(&signals, nullptr, &wait);
          if (done_.load()) return;
          log.Error(
              "shutdown",
              absl::StrCat(
                  got > 0 ? std::string("second signal")
                          : absl::StrCat("not done after ",
                                         absl::FormatDuration(kShutdownLimit)),
                  " while waiting for ", stage_.load(), ": ending at once"));
          _exit(kExitFailure);
        }) {}
  ~ShutdownGuard() {
    done_.store(true);
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

  // What is waited for from here on; a literal.
  void At(const char* stage) { stage_.store(stage); }

 private:
  std::atomic<bool> done_{false};
  std::atomic<const char*> stage_{"the ready file"};
  std::thread thread_;
};

// Takes up the settings as they are on disk now; `in_force` is kept up to date.
void Reload(const DaemonOptions& options, Tree& tree,
            std::vector<config::EffectiveSetting>& in_force) {
  NotifyReloading();
  const absl::StatusOr<config::LoadedSettings> read = options.reload();
  if (read.ok()) {
    SettingChanges changes = CompareSettings(in_force, read->effective);
    PutInForce(read->settings, changes, tree);
    in_force = std::move(changes.effective);
  } else {
    tree.log.Keep(config::LogLevel::kError, "reload",
                  absl::StrCat("the settings are as before, for what is read "
                               "now is wrong: ",
                               read.status().message()));
  }
  NotifyReady();
}

}  // namespace

int RunDaemon(DaemonOptions options) {
  const sigset_t signals = BlockSignals();
  Tree tree(options.loaded.settings);
  StartGuard start(signals, tree.log);
  absl::Status built = Build(options, tree);
  int signal = start.End();
  if (built.ok()) built = TellReady(options, tree);
  if (!built.ok()) {
    PrintError(built);
    ShutdownGuard guard(signals, tree.log);
    TakeDown(tree, [&guard](const char* stage) { guard.At(stage); });
    return ExitCodeOf(built);
  }
  std::vector<config::EffectiveSetting> in_force = options.loaded.effective;
  while (signal == 0 || signal == SIGHUP) {
    if (signal == SIGHUP) Reload(options, tree, in_force);
    sigwait(&signals, &signal);
  }
  tree.log.Keep(config::LogLevel::kInfo, "shutdown", NameOf(signal));
  NotifyStopping();
  ShutdownGuard guard(signals, tree.log);
  if (!options.ready_file.empty()) {
    std::error_code error;
    std::filesystem::remove(options.ready_file, error);
  }
  TakeDown(tree, [&guard](const char* stage) { guard.At(stage); });
  return kExitOk;
}

int DaemonMain(int argc, char** argv,
               std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
                   const config::NodeSettings&)>
                   open_learners) {
  if (IsJoinCommand(argc, argv)) return JoinMain(argc, argv);
  if (IsDataCommand(argc, argv)) return DataMain(argc, argv);
  const auto environment = config::ProcessEnvironment();
  auto line = config::ParseDaemonCommandLine(argc, argv, environment);
  if (!line.ok()) {
    PrintError(line.status());
    return kExitUsage;
  }
  if (line->help) {
    std::cout << config::DaemonHelp();
    return kExitOk;
  }
  if (line->version) {
    std::cout << "dfld " << kVersion << "\n";
    return kExitOk;
  }
  auto loaded = LoadSettings(*line, environment);
  if (!loaded.ok()) {
    PrintError(loaded.status());
    return kExitConfig;
  }
  if (line->check) {
    const absl::Status checked = CheckData(loaded->settings, open_learners);
    if (!checked.ok()) {
      PrintError(checked);
      return ExitCodeOf(checked);
    }
    std::cout << "the configuration is valid\n";
    return kExitOk;
  }
  DaemonOptions options;
  options.loaded = *std::move(loaded);
  options.ready_file = line->ready_file;
  options.open_learners = std::move(open_learners);
  options.reload = [line = *line, environment] {
    return LoadSettings(line, environment);
  };
  return RunDaemon(std::move(options));
}

}  // namespace dfl::app
