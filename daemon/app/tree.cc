#include "daemon/app/tree.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/app/memory_limit.h"
#include "daemon/app/network/without_data.h"
#include "daemon/app/new_data/data_marks.h"
#include "daemon/app/service/service_manager.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/runtime/keeper/run_keeper.h"
#include "daemon/threads/steady_cond_var.h"
#include "nlohmann/json.hpp"

namespace dfl::app {
namespace {

// A goodbye that does not leave within this is given up.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);
// A node that does not come to a boundary within this ends without a last
// checkpoint: the one before it holds.
constexpr absl::Duration kLastCheckpoint = absl::Seconds(6);
// Of the thread that writes checkpoints: training goes first.
constexpr int kCheckpointNiceness = 5;
constexpr absl::Duration kPublishPeriod = absl::Milliseconds(200);

// An incarnation never seen before: the time makes it so, also without a state
// directory that survives.
uint64_t DrawIncarnation(uint64_t starts) {
  const uint64_t drawn =
      Mix64(static_cast<uint64_t>(absl::ToUnixNanos(absl::Now())) ^
            (static_cast<uint64_t>(getpid()) << 40) ^ starts);
  return drawn == 0 ? 1 : drawn;
}

absl::Status WriteReadyFile(const std::string& path,
                            const nlohmann::ordered_json& content) {
  const absl::Status written = AtomicFile::Write(path, content.dump(2) + "\n");
  if (written.ok()) return written;
  return absl::InternalError(
      absl::StrCat("the ready file ", written.message()));
}

// What others are told of where this node is. On the loop.
void TellAddresses(Tree& tree, const std::vector<std::string>& addresses) {
  tree.transport->SetAdvertised(addresses.empty() ? "" : addresses.front());
  ports::MemberFacts facts = tree.node->membership().facts();
  facts.addresses = addresses;
  tree.node->membership().SetFacts(std::move(facts));
}

// Publishes the status where there is news and gives signs of life, on the
// loop, for ever.
void StartTicking(Tree& tree) {
  tree.tick = [&tree] {
    if (tree.rest) tree.rest->Insist();
    const absl::Duration patience = tree.frozen_after > absl::ZeroDuration()
                                        ? tree.frozen_after
                                        : absl::InfiniteDuration();
    const auto frozen = tree.backend->LookIfFrozen(patience);
    tree.eyes->Turn();
    const runtime::Membership& membership = tree.node->membership();
    tree.known_members->Look(membership.members(), membership.changes());
    if (tree.quiet.IsQuiet(tree.loop.turns(), tree.loop.Now())) {
      tree.backend->StillHolds();
      tree.life.TellAgain(frozen);
    } else {
      tree.backend->Publish();
      tree.log.TellLeftOut();
      control::DaemonStatus status = tree.backend->Status();
      tree.life.Tell(status.node, frozen);
      tree.eyes->Look(std::move(status), frozen ? FrozenLine(*frozen) : "");
    }
    tree.loop.After(kPublishPeriod, [&tree] { tree.tick(); });
  };
  tree.loop.Post([&tree] { tree.tick(); });
}

bool HasData(const config::NodeSettings& settings) {
  return !settings.data.train_paths.empty();
}

// The node's data, where it has any.
absl::Status OpenLearners(const DaemonOptions& options, Tree& tree) {
  const config::NodeSettings& settings = options.loaded.settings;
  absl::StatusOr<std::unique_ptr<LearnerFactory>> opened =
      HasData(settings) ? options.open_learners(settings)
                        : MakeFactoryWithoutData(settings.participation);
  if (absl::IsPermissionDenied(opened.status())) {
    return absl::InvalidArgumentError(opened.status().message());
  }
  DFL_ASSIGN_OR_RETURN(std::shared_ptr<LearnerFactory> learners,
                       std::move(opened));
  tree.learners = std::make_unique<RenewableLearners>(std::move(learners));
  for (const std::string& warning : tree.learners->Report().warnings) {
    tree.log.Warning("data", warning);
  }
  return absl::OkStatus();
}

// `in_use`: the files as they were before they were read.
void BuildNewData(const DaemonOptions& options, const DataMarks& in_use,
                  Tree& tree) {
  const config::NodeSettings& settings = options.loaded.settings;
  if (!HasData(settings)) return;
  NewDataOptions data;
  data.interval = settings.data.watch;
  data.in_use = in_use;
  data.look = [paths = DataPaths(settings.data)] { return MarksOf(paths); };
  data.read = [open = options.open_learners, settings] {
    return open(settings);
  };
  tree.new_data =
      std::make_unique<NewData>(std::move(data), *tree.learners, tree.loop,
                                &tree.node->membership(), tree.events);
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

// Who this node is to others, and whose orders it takes.
absl::Status BuildSecurity(const config::NodeSettings& settings, Tree& tree) {
  OrdersOptions orders;
  orders.self = NodeId(settings.name);
  if (settings.security == config::Security::kInsecure) {
    tree.log.Warning("security", kInsecureText);
    orders.insecure_cluster = settings.cluster;
  } else {
    DFL_ASSIGN_OR_RETURN(tree.security,
                         Security::Open(settings, tree.loop, tree.events));
  }
  tree.orders = std::make_unique<Orders>(
      std::move(orders), tree.security.get(), tree.loop, tree.events,
      [&tree] { tree.transport->RecheckPeers(absl::Now()); });
  return absl::OkStatus();
}

// What this node says of itself from the start; its addresses come once it
// listens.
runtime::MembershipOptions MembershipOf(const config::NodeSettings& settings,
                                        uint64_t starts, uint64_t memory,
                                        int64_t rows) {
  runtime::MembershipOptions options;
  options.enabled = true;
  options.self = NodeId(settings.name);
  options.starts = starts;
  options.seed = memory;
  options.facts.labels = settings.labels;
  options.facts.rows = rows;
  options.facts.participation = settings.participation;
  options.facts.pace = settings.membership.pace;
  options.facts.memory = memory;
  return options;
}

// The node on its transport; nothing listens or dials yet.
absl::Status BuildNode(const config::NodeSettings& settings, uint64_t starts,
                       Tree& tree) {
  exchange::GrpcTransportOptions transport;
  transport.self.node = NodeId(settings.name);
  transport.self.incarnation = DrawIncarnation(starts);
  if (tree.security) {
    transport.security = &tree.security->network();
  } else {
    transport.cluster = settings.cluster;
  }
  runtime::NodeOptions node;
  node.self = transport.self.node;
  node.incarnation = transport.self.incarnation;
  node.timing = &tree.steps;
  node.transfers.max_inbound_per_peer = settings.limits.max_transfers_per_peer;
  node.transfers.max_answers_per_peer = settings.limits.max_transfers_per_peer;
  const runtime::RecordOptions records = {.judge = &tree.orders->judge(),
                                          .files = tree.files.get(),
                                          .listener = tree.orders.get()};
  tree.transport = std::make_unique<exchange::GrpcTransport>(
      tree.loop, std::move(transport));
  tree.measured = std::make_unique<MeasuredTransport>(*tree.transport,
                                                      tree.loop, tree.meters);
  tree.worker = std::make_unique<Worker>(
      tree.loop, "dfld-encode",
      WorkerOptions{.measured = [&tree](absl::Duration took) {
        tree.meters.encode.Observe(took);
      }});
  tree.checkpoints = std::make_unique<store::CheckpointFiles>(*tree.files);
  tree.checkpoint_worker = std::make_unique<Worker>(
      tree.loop, "dfld-keep", WorkerOptions{.niceness = kCheckpointNiceness});
  node.checkpoints.store = tree.checkpoints.get();
  node.checkpoints.worker = tree.checkpoint_worker.get();
  node.checkpoints.wall_clock = [] { return absl::Now(); };
  absl::StatusOr<std::string> note = std::string();
  tree.loop.RunAndWait([&] {
    tree.node = std::make_unique<runtime::LinkedNode>(
        node, tree.loop, *tree.measured, *tree.worker, tree.events, records,
        MembershipOf(settings, starts, node.incarnation,
                     tree.learners->Report().train_rows));
    tree.follower = std::make_unique<runtime::PlanFollower>(
        node.self, tree.loop, *tree.worker, tree.node->membership(),
        tree.node->node());
    // Before anybody can connect: bans hold from the start.
    note = tree.orders->Load(tree.node->records(), tree.node->membership());
  });
  if (!note.ok()) return Annotate(note.status(), settings.state_dir);
  if (!note->empty()) tree.log.Warning("store", *note);
  return absl::OkStatus();
}

void BuildBackend(const DaemonOptions& options, runtime::RunKeeper keeper,
                  Tree& tree) {
  const config::NodeSettings& settings = options.loaded.settings;
  BackendOptions backend;
  backend.self = NodeId(settings.name);
  backend.insecure = tree.security == nullptr;
  backend.security = tree.security.get();
  backend.orders = tree.orders.get();
  backend.new_data = tree.new_data.get();
  backend.files = tree.files.get();
  backend.checkpoints = tree.checkpoints.get();
  backend.checkpoint_worker = tree.checkpoint_worker.get();
  backend.cluster = settings.cluster;
  backend.membership = &tree.node->membership();
  backend.follower = tree.follower.get();
  backend.limits.max_model_bytes = settings.limits.max_model_bytes;
  backend.limits.memory = FindMemoryLimit(settings.compute.memory_limit);
  backend.publish = settings.publish;
  backend.steps.pace = {static_cast<int>(settings.train.nice),
                        static_cast<double>(settings.train.cpu_share) / 100};
  backend.settings = options.loaded.effective;
  backend.peer_addresses = tree.bound;
  backend.peers = settings.peers;
  backend.names = tree.finding->peers();
  tree.backend = std::make_unique<ControlBackend>(
      std::move(backend), tree.loop, tree.node->node(), *tree.learners,
      std::move(keeper), tree.events, tree.log);
}

void BuildEyes(const config::NodeSettings& settings, Tree& tree) {
  EyesOptions options;
  options.state_dir = settings.state_dir;
  options.web = settings.web;
  options.compute_threads = settings.compute.threads;
  options.on_network = settings.OnNetwork();
  options.period = kPublishPeriod;
  tree.eyes = std::make_unique<Eyes>(std::move(options), tree.loop, tree.events,
                                     tree.log, *tree.backend, *tree.measured,
                                     tree.meters, tree.steps);
}

absl::Status OpenAuditLog(const config::NodeSettings& settings, Tree& tree) {
  DFL_ASSIGN_OR_RETURN(
      tree.audit, AuditLog::Open(settings.state_dir + "/audit.log",
                                 [&tree](const absl::Status& failed) {
                                   tree.log.Keep(config::LogLevel::kError,
                                                 "audit", failed.message());
                                 }));
  return absl::OkStatus();
}

// Looks at certificates and at live links, for ever.
void WatchSecurity(Tree& tree) {
  if (!tree.security) return;
  tree.loop.RunAndWait([&tree] {
    tree.security->Watch([&tree] {
      const absl::Time now = absl::Now();
      tree.orders->Recheck();
      tree.transport->RecheckPeers(now);
      tree.audit->WriteRefusals(tree.security->network().refusals(), now,
                                tree.loop.Now());
    });
  });
}

// Gets a certificate where a join token asks for it, and gives others theirs
// where this node has the authority.
absl::Status StartEnrolling(const config::NodeSettings& settings, Tree& tree) {
  if (!tree.security) return absl::OkStatus();
  const auto note = [&tree](bool warning, const std::string& text) {
    tree.loop.Post([&tree, warning, text] {
      tree.events.Report(ports::SecurityNote{warning, text});
    });
  };
  const tls::CredentialPaths paths = settings.tls.Paths();
  if (Enrolling::Wanted(settings, paths)) {
    DFL_ASSIGN_OR_RETURN(tree.enrolling,
                         Enrolling::Start(settings, paths, note, {}));
  }
  DFL_ASSIGN_OR_RETURN(tree.issuer, StartIssuer(settings, note));
  return absl::OkStatus();
}

absl::Status ServeControl(const config::NodeSettings& settings, Tree& tree) {
  control::ControlServerOptions control;
  control.unix_socket = settings.control.socket;
  control.admins = settings.control.admins;
  control.viewers = settings.control.viewers;
  control.addresses = settings.control.listen;
  if (tree.security) {
    control.security = &tree.security->network();
    control.signed_orders = settings.OnNetwork();
  }
  control.observer = tree.eyes.get();
  control.health = [&tree] { return tree.eyes->Serving(); };
  control.audit = [&tree](const control::AuditRecord& record) {
    tree.audit->Write(record, absl::Now());
    tree.log.Keep(
        config::LogLevel::kInfo, "audit",
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
  return absl::OkStatus();
}

// Listens, and tells others where.
absl::Status Listen(const config::NodeSettings& settings, Tree& tree) {
  tree.finding = std::make_unique<Finding>(settings, tree.loop, tree.log);
  if (!settings.peer.listen.empty()) {
    DFL_ASSIGN_OR_RETURN(tree.bound,
                         tree.transport->Listen(settings.peer.listen));
  }
  DFL_RETURN_IF_ERROR(tree.finding->Begin(tree.bound));
  const std::vector<std::string>& told = tree.finding->told();
  tree.advertised = told.empty() ? "" : told.front();
  tree.loop.RunAndWait([&] { TellAddresses(tree, told); });
  return absl::OkStatus();
}

// Looks for others from here on.
void StartFinding(const NodeId& self, Tree& tree) {
  FindingHooks hooks;
  hooks.candidates = [&tree](const std::string& source,
                             std::vector<std::string> addresses) {
    if (tree.node == nullptr) return;  // it goes down
    tree.node->membership().SetCandidates(source, std::move(addresses));
  };
  hooks.moved = [&tree](const std::vector<std::string>& addresses) {
    if (tree.node != nullptr) TellAddresses(tree, addresses);
  };
  tree.finding->Start(std::move(hooks));
  tree.known_members = std::make_unique<KnownMembers>(
      self, *tree.files, tree.loop, *tree.checkpoint_worker,
      [&tree](std::vector<std::string> addresses) {
        if (tree.node == nullptr) return;  // it goes down
        tree.node->membership().SetCandidates("last run", std::move(addresses));
      },
      [&tree](const std::string& text) { tree.log.Warning("store", text); });
  tree.loop.RunAndWait([&tree] { tree.known_members->Start(); });
}

// Has the node write what it goes on from, and stand still.
void Suspend(Tree& tree) {
  if (tree.node == nullptr || tree.backend == nullptr) return;
  const auto over = std::make_shared<std::atomic<bool>>(false);
  tree.loop.RunAndWait([&] {
    tree.node->node().Suspend(
        [over](const absl::Status& /*told*/) { over->store(true); });
  });
  const absl::Time limit = SteadyNow() + kLastCheckpoint;
  while (!over->load() && SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  tree.checkpoints->Stop();
}

// Says goodbye, and gives it a moment to leave.
void Leave(Tree& tree) {
  if (tree.node == nullptr) return;
  bool linked = false;
  tree.loop.RunAndWait([&] { tree.node->membership().Leave(); });
  const absl::Time limit = SteadyNow() + kGoodbye;
  do {
    linked = false;
    tree.loop.RunAndWait([&] {
      for (const auto& [node, peer] : tree.node->links().peers()) {
        linked = linked ||
                 (peer.link != 0 && tree.transport->UnsentBytes(peer.link) > 0);
      }
    });
    if (linked) absl::SleepFor(absl::Milliseconds(10));
  } while (linked && SteadyNow() < limit);
}

}  // namespace

absl::Status Build(const DaemonOptions& options, Tree& tree) {
  const config::NodeSettings& settings = options.loaded.settings;
  // Plan and data first: a mistake there is a mistake of configuration, and no
  // port is bound yet.
  DFL_ASSIGN_OR_RETURN(const std::string initial_plan,
                       ReadInitialPlan(settings));
  const DataMarks data = MarksOf(DataPaths(settings.data));
  DFL_RETURN_IF_ERROR(OpenLearners(options, tree));
  DFL_ASSIGN_OR_RETURN(tree.files,
                       store::DiskFiles::OpenFolder(settings.state_dir));
  runtime::RunKeeper keeper(*tree.files, tree.codec, settings.name);
  const auto begun = keeper.Begin();
  if (!begun.ok()) return Annotate(begun.status(), settings.state_dir);
  if (!begun->note.empty()) tree.log.Warning("store", begun->note);

  DFL_RETURN_IF_ERROR(OpenAuditLog(settings, tree));
  DFL_RETURN_IF_ERROR(BuildSecurity(settings, tree));
  DFL_RETURN_IF_ERROR(BuildNode(settings, keeper.starts(), tree));
  DFL_RETURN_IF_ERROR(Listen(settings, tree));
  BuildNewData(options, data, tree);
  BuildBackend(options, std::move(keeper), tree);
  BuildEyes(settings, tree);
  StartFinding(NodeId(settings.name), tree);
  DFL_RETURN_IF_ERROR(TakeUpPlan(tree, settings, initial_plan));
  tree.backend->Connect();
  WatchSecurity(tree);
  DFL_RETURN_IF_ERROR(StartEnrolling(settings, tree));
  StartTicking(tree);
  tree.rest =
      std::make_unique<Rest>(tree.loop, *tree.checkpoint_worker,
                             tree.node->node(), tree.log, SourcesOfThisBox());
  tree.loop.RunAndWait([&] { tree.rest->Set(settings.train); });
  DFL_RETURN_IF_ERROR(ServeControl(settings, tree));
  // Before the server of those who look at it; it has a thread of its own.
  if (!settings.web.listen.empty()) {
    tree.page = std::make_unique<web::StatusPage>(*tree.backend);
  }
  return tree.eyes->Serve(
      [&tree](web::HttpServer& server) { tree.page->Register(server); });
}

absl::Status TellReady(const DaemonOptions& options, Tree& tree) {
  const std::vector<std::string>& bound = tree.bound;
  const std::vector<std::string> web = tree.eyes->addresses();
  tree.log.Info(
      "listening",
      absl::StrCat(
          "peers at ",
          bound.empty() ? "(dials out only)" : absl::StrJoin(bound, ", "),
          tree.advertised.empty() ? ""
                                  : absl::StrCat(" (as ", tree.advertised, ")"),
          "; control at ", absl::StrJoin(tree.control->addresses(), ", "),
          web.empty() ? "" : "; pages at ", absl::StrJoin(web, ", ")));
  if (!options.ready_file.empty()) {
    nlohmann::ordered_json ready;
    ready["node"] = options.loaded.settings.name;
    ready["pid"] = getpid();
    ready["peer"] = bound;
    ready["advertised"] = tree.advertised;
    ready["control"] = tree.control->addresses();
    ready["web"] = web;
    DFL_RETURN_IF_ERROR(WriteReadyFile(options.ready_file, ready));
  }
  NotifyReady();
  return absl::OkStatus();
}

void PutInForce(const config::NodeSettings& settings,
                const SettingChanges& changes, Tree& tree) {
  // Before the level changes: a record of it in any case.
  tree.log.Keep(config::LogLevel::kInfo, "reload", Describe(changes));
  tree.log.SetLevel(settings.log.level);
  tree.backend->SetSettings(changes.effective, settings.peers);
  tree.loop.RunAndWait([&] {
    tree.frozen_after = settings.compute.frozen_after;
    tree.rest->Set(settings.train);
    tree.orders->SetSettingsLabels(settings.labels);
  });
}

void TakeDown(Tree& tree, const std::function<void(const char*)>& at) {
  if (tree.eyes) tree.eyes->SetStopping();
  at("those who look for others");
  if (tree.finding) tree.finding->Stop();
  at("a look at the data files");
  if (tree.new_data) tree.new_data->Disconnect();
  at("the way to a certificate");
  tree.enrolling.reset();
  tree.issuer.reset();
  at("calls on control");
  tree.control.reset();
  at("those who read metrics and pages");
  if (tree.eyes) tree.eyes->Stop();
  tree.page.reset();
  at("the end of a step, and the last checkpoint");
  Suspend(tree);
  at("the goodbye to others");
  Leave(tree);
  at("the node's loop");
  if (tree.backend) {
    tree.loop.RunAndWait([&tree] {
      if (tree.rest) tree.rest->Stop();
      if (tree.security) tree.security->Stop();
      if (tree.transport) tree.transport->Shutdown();
      tree.tick = [] {};
    });
  }
  tree.eyes.reset();
  at("a plan that is being taken over, or the disk");
  tree.backend.reset();
  at("the node: a gradient, an evaluation or an export under way");
  tree.loop.RunAndWait([&tree] {
    tree.follower.reset();
    tree.node.reset();
  });
  at("the encoding of a model");
  if (tree.worker) tree.worker->Stop();
  at("a checkpoint that is being written");
  if (tree.checkpoint_worker) tree.checkpoint_worker->Stop();
  at("the node's loop");
  tree.loop.Stop();
  at("the connections to peers");
  tree.follower.reset();
  tree.node.reset();
  tree.transport.reset();
}

}  // namespace dfl::app
