#include "daemon/app/daemon.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "daemon/app/audit_log.h"
#include "daemon/app/control_backend.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/join_command.h"
#include "daemon/app/logger.h"
#include "daemon/app/memory_limit.h"
#include "daemon/app/service_manager.h"
#include "daemon/app/version.h"
#include "daemon/app/worker.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/host_port.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/control/control_server.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/runtime/keeper/run_keeper.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/store/disk_files.h"
#include "daemon/store/node_state.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

constexpr absl::Duration kPublishPeriod = absl::Milliseconds(200);
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

// An incarnation never seen before: the time makes it so, also without a state
// directory that survives.
uint64_t DrawIncarnation(uint64_t starts) {
  const uint64_t drawn =
      Mix64(static_cast<uint64_t>(absl::ToUnixNanos(absl::Now())) ^
            (static_cast<uint64_t>(getpid()) << 40) ^ starts);
  return drawn == 0 ? 1 : drawn;
}

// What we say of ourselves: the setting, or the first listener, with the host's
// name in place of a wildcard.
std::string AdvertisedAddress(const config::NodeSettings& settings,
                              const std::vector<std::string>& bound) {
  if (bound.empty()) return settings.peer.advertise;
  auto listener = ParseHostPort(bound.front());
  if (!listener.ok()) return settings.peer.advertise;
  HostPort address = *listener;
  if (!settings.peer.advertise.empty()) {
    auto wanted = ParseHostPort(settings.peer.advertise);
    if (!wanted.ok()) return settings.peer.advertise;
    if (wanted->port != 0) return settings.peer.advertise;
    address.host = wanted->host;  // port 0: the one we listen on
  } else if (IsWildcard(address.host)) {
    char host[256] = {};
    if (gethostname(host, sizeof(host) - 1) != 0) return "";
    address.host = host;
  }
  return address.ToString();
}

absl::Status WriteReadyFile(const std::string& path,
                            const nlohmann::ordered_json& content) {
  absl::StatusOr<std::unique_ptr<AtomicFile>> file = AtomicFile::Create(path);
  absl::Status written = file.status();
  if (written.ok()) written = (*file)->Append(content.dump(2) + "\n");
  if (written.ok()) written = (*file)->Commit();
  if (written.ok()) return written;
  return absl::InternalError(
      absl::StrCat("the ready file ", written.message()));
}

// Everything that lives while the daemon runs, in the order it is built.
struct Tree {
  explicit Tree(const config::NodeSettings& settings)
      : log(settings.log, settings.name),
        loop("dfld-node"),
        events(loop, log) {}

  Logger log;
  std::unique_ptr<store::DiskFiles> files;
  store::NodeStateCodec codec;
  EventLoop loop;
  EventHub events;
  std::unique_ptr<exchange::GrpcTransport> transport;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<runtime::LinkedNode> node;
  std::unique_ptr<LearnerFactory> learners;
  std::unique_ptr<ControlBackend> backend;
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<control::ControlServer> control;
  std::function<void()> tick;
};

// Publishes the status and feeds the watchdog, on the loop, for ever.
void StartTicking(Tree& tree) {
  tree.tick = [&tree] {
    tree.backend->Publish();
    const runtime::NodeStatus status = tree.backend->Status().node;
    NotifyAlive(absl::StrCat(
        ports::PhaseName(status.phase), ", step ", status.step,
        status.stop_steps > 0 ? absl::StrCat(" of ", status.stop_steps) : ""));
    tree.loop.After(kPublishPeriod, [&tree] { tree.tick(); });
  };
  tree.loop.Post([&tree] { tree.tick(); });
}

// In reverse order of building. The node and the trainer end on the loop.
void TakeDown(Tree& tree) {
  if (tree.control) tree.control.reset();
  if (tree.backend) {
    tree.loop.RunAndWait([&tree] {
      if (tree.transport) tree.transport->Shutdown();
      tree.tick = [] {};
    });
  }
  tree.backend.reset();
  tree.loop.RunAndWait([&tree] { tree.node.reset(); });
  if (tree.worker) tree.worker->Stop();
  tree.loop.Stop();
  tree.node.reset();
  tree.transport.reset();
}

// The text of the plan that the settings name, checked; "" if they name none.
absl::StatusOr<std::string> ReadInitialPlan(
    const config::NodeSettings& settings) {
  const std::string& path = settings.run.plan;
  if (path.empty()) return "";
  auto text = config::ReadTextFile(path, config::kMaxPlanBytes);
  if (!text.ok()) return Annotate(text.status(), "run.plan");
  const auto plan = config::ParsePlan(*text, path);
  if (!plan.ok()) return Annotate(plan.status(), "run.plan");
  return text;
}

// A plan that was stored, or the one the settings name.
absl::Status TakeUpPlan(Tree& tree, const config::NodeSettings& settings,
                        const std::string& initial_plan) {
  const bool stored = !tree.backend->Plan().yaml.empty();
  const absl::Status restored = tree.backend->Restore();
  if (!restored.ok()) {
    if (!stored) return Annotate(restored, "state_dir");
    // A stored plan that no longer fits must not keep the box from being
    // reached and mended.
    tree.log.Error("plan", absl::StrCat("the stored plan is not taken up: ",
                                        restored.message()));
  }
  if (stored || initial_plan.empty()) return absl::OkStatus();
  return Annotate(tree.backend->AdoptInitialPlan(
                      initial_plan, settings.run.plan, settings.run.autostart),
                  "run.plan");
}

// Builds everything; `tree` is as far as it came when that fails.
absl::Status Build(const DaemonOptions& options, Tree& tree) {
  const config::NodeSettings& settings = options.loaded.settings;
  if (settings.security == config::Security::kTls && settings.OnNetwork()) {
    return absl::InvalidArgumentError(
        "security: tls cannot be used on a network in this version");
  }
  // Plan and data first: a mistake there is a mistake of configuration, and no
  // port is bound yet.
  DFL_ASSIGN_OR_RETURN(const std::string initial_plan,
                       ReadInitialPlan(settings));
  auto learners = options.open_learners(settings);
  if (absl::IsPermissionDenied(learners.status())) {
    return absl::InvalidArgumentError(learners.status().message());
  }
  DFL_ASSIGN_OR_RETURN(tree.learners, std::move(learners));
  DFL_ASSIGN_OR_RETURN(tree.files,
                       store::DiskFiles::OpenFolder(settings.state_dir));
  runtime::RunKeeper keeper(*tree.files, tree.codec, settings.name);
  const auto begun = keeper.Begin();
  if (!begun.ok()) return Annotate(begun.status(), settings.state_dir);
  if (!begun->note.empty()) tree.log.Warning("store", begun->note);

  const bool insecure = settings.security == config::Security::kInsecure;
  if (insecure) {
    tree.log.Warning("security",
                     "security: insecure is set: network traffic is plain text "
                     "and peers are not authenticated");
  }
  exchange::GrpcTransportOptions transport;
  transport.self.node = NodeId(settings.name);
  transport.self.incarnation = DrawIncarnation(keeper.starts());
  runtime::NodeOptions node;
  node.self = transport.self.node;
  node.incarnation = transport.self.incarnation;
  node.transfers.max_inbound_per_peer = settings.limits.max_transfers_per_peer;
  node.transfers.max_answers_per_peer = settings.limits.max_transfers_per_peer;
  tree.transport = std::make_unique<exchange::GrpcTransport>(
      tree.loop, std::move(transport));
  tree.worker = std::make_unique<Worker>(tree.loop, "dfld-encode");
  tree.loop.RunAndWait([&] {
    tree.node = std::make_unique<runtime::LinkedNode>(
        node, tree.loop, *tree.transport, *tree.worker, tree.events);
  });
  std::vector<std::string> bound;
  if (!settings.peer.listen.empty()) {
    DFL_ASSIGN_OR_RETURN(bound, tree.transport->Listen(settings.peer.listen));
  }
  const std::string advertised = AdvertisedAddress(settings, bound);
  tree.loop.RunAndWait([&] { tree.transport->SetAdvertised(advertised); });

  BackendOptions backend;
  backend.self = NodeId(settings.name);
  backend.insecure = insecure;
  backend.limits.max_model_bytes = settings.limits.max_model_bytes;
  backend.limits.memory = FindMemoryLimit(settings.compute.memory_limit);
  backend.settings = options.loaded.effective;
  backend.peer_addresses = bound;
  backend.peers = settings.peers;
  tree.backend = std::make_unique<ControlBackend>(
      std::move(backend), tree.loop, tree.node->node(), *tree.learners,
      std::move(keeper), tree.events, tree.log);
  tree.loop.RunAndWait([&] {
    for (const std::string& peer : settings.peers) {
      (void)tree.node->links().AddAddress(peer);
    }
  });
  DFL_RETURN_IF_ERROR(TakeUpPlan(tree, settings, initial_plan));
  StartTicking(tree);

  control::ControlServerOptions control;
  control.unix_socket = settings.control.socket;
  control.admins = settings.control.admins;
  control.viewers = settings.control.viewers;
  control.addresses = settings.control.listen;
  DFL_ASSIGN_OR_RETURN(
      tree.audit, AuditLog::Open(settings.state_dir + "/audit.log",
                                 [&tree](const absl::Status& failed) {
                                   tree.log.Error("audit", failed.message());
                                 }));
  control.audit = [&tree](const control::AuditRecord& record) {
    tree.audit->Write(record, absl::Now());
    tree.log.Info(
        "audit",
        absl::StrCat(record.caller.name, " (",
                     control::Name(record.caller.role), "): ", record.what,
                     ": ",
                     record.status.ok() ? "ok" : record.status.ToString()));
  };
  if (!control.unix_socket.empty()) {
    std::error_code error;
    std::filesystem::create_directories(
        std::filesystem::path(control.unix_socket).parent_path(), error);
  }
  DFL_ASSIGN_OR_RETURN(tree.control, control::ControlServer::Start(
                                         std::move(control), *tree.backend));

  tree.log.Info(
      "listening",
      absl::StrCat(
          "peers at ",
          bound.empty() ? "(dials out only)" : absl::StrJoin(bound, ", "),
          advertised.empty() ? "" : absl::StrCat(" (as ", advertised, ")"),
          "; control at ", absl::StrJoin(tree.control->addresses(), ", ")));
  if (!options.ready_file.empty()) {
    nlohmann::ordered_json ready;
    ready["node"] = settings.name;
    ready["pid"] = getpid();
    ready["peer"] = bound;
    ready["advertised"] = advertised;
    ready["control"] = tree.control->addresses();
    DFL_RETURN_IF_ERROR(WriteReadyFile(options.ready_file, ready));
  }
  return absl::OkStatus();
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
