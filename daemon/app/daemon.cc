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

#include "absl/time/time.h"
#include "daemon/app/join_command.h"
#include "daemon/app/security.h"
#include "daemon/app/service_manager.h"
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

// Ends the process when taking down hangs, e.g. in a very long gradient.
class ShutdownGuard {
 public:
  ShutdownGuard(sigset_t signals, Logger& log)
      : thread_([this, signals, &log] {
          timespec wait = absl::ToTimespec(kShutdownLimit);
          const int got = sigtimedwait(&signals, nullptr, &wait);
          if (done_.load()) return;
          log.Warning("shutdown", got > 0 ? "second signal: ending at once"
                                          : "not done in time: ending at once");
          _exit(got > 0 ? kExitFailure : kExitOk);
        }) {}
  ~ShutdownGuard() {
    done_.store(true);
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

int RunDaemon(DaemonOptions options) {
  const sigset_t signals = BlockSignals();
  Tree tree(options.loaded.settings);
  const absl::Status built = Build(options, tree);
  if (!built.ok()) {
    PrintError(built);
    TakeDown(tree);
    return ExitCodeOf(built);
  }
  NotifyReady();

  int signal = 0;
  do {
    sigwait(&signals, &signal);
  } while (signal == SIGHUP);  // nothing to reload yet, and no reason to die
  tree.log.Info("shutdown", signal == SIGTERM ? "SIGTERM" : "SIGINT");
  NotifyStopping();
  ShutdownGuard guard(signals, tree.log);
  if (!options.ready_file.empty()) {
    std::error_code error;
    std::filesystem::remove(options.ready_file, error);
  }
  TakeDown(tree);
  return kExitOk;
}

int DaemonMain(int argc, char** argv,
               std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
                   const config::NodeSettings&)>
                   open_learners) {
  if (IsJoinCommand(argc, argv)) return JoinMain(argc, argv);
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
    std::cout << "the configuration is valid\n";
    return kExitOk;
  }
  DaemonOptions options;
  options.loaded = *std::move(loaded);
  options.ready_file = line->ready_file;
  options.open_learners = std::move(open_learners);
  return RunDaemon(std::move(options));
}

}  // namespace dfl::app
