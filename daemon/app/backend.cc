#include "daemon/app/backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "daemon/app/model_files.h"
#include "daemon/app/plan_facts.h"
#include "daemon/app/version.h"
#include "daemon/base/names.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/host_port.h"
#include "daemon/config/plan_yaml.h"

namespace dfl::app {
namespace {

using control::TrainAction;
using store::DesiredPhase;

// A name and a seed for a run that has none yet.
void MintRun(core::RunPlan& plan) {
  Rng rng(absl::ToUnixNanos(absl::Now()) ^ DeriveSeed(1, plan.model.kind));
  if (plan.run_id.empty()) {
    plan.run_id = absl::StrFormat("run-%012x", rng.Next() >> 16);
  }
  if (plan.seed == 0) plan.seed = 1 + rng.Below(1'000'000'000);
}

}  // namespace

Backend::Backend(BackendOptions options, EventLoop& loop, runtime::Node& node,
                 LearnerFactory& learners, store::NodeStateStore& store,
                 EventHub& events, Logger& log)
    : options_(std::move(options)),
      loop_(loop),
      node_(node),
      learners_(learners),
      store_(store),
      events_(events),
      log_(log),
      started_(loop.Now()),
      setup_(loop, "dfld-setup") {
  absl::MutexLock lock(&mutex_);
  for (const std::string& address : options_.peers) {
    control::PeerAddress& peer = peers_[address];
    peer.address = address;
    peer.origin = "settings";
  }
  status_.node = options_.self;
}

Backend::~Backend() { setup_.Stop(); }

// ----------------------------------------------------------------- reading ----

void Backend::Publish() {
  runtime::NodeStatus status = node_.Status();
  absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
  for (auto& [name, peer] : peers_) {
    const auto it = node_.links().addresses().find(name);
    if (it == node_.links().addresses().end()) continue;
    peer.node = it->second.node;
    peer.linked = !peer.node.empty() && node_.links().IsUp(peer.node);
    peer.last_error = it->second.last_error;
  }
}

control::VersionInfo Backend::Version() {
  control::VersionInfo info;
  info.version = kVersion;
  info.node = options_.self;
  info.libraries = learners_.Libraries();
  return info;
}

control::DaemonStatus Backend::Status() {
  control::DaemonStatus status;
  status.version = kVersion;
  status.insecure = options_.insecure;
  status.uptime = loop_.Now() - started_;
  status.peer_addresses = options_.peer_addresses;
  if (options_.insecure) {
    status.warnings.push_back(
        "security is off: network traffic is plain text and peers are not "
        "authenticated");
  }
  absl::MutexLock lock(&mutex_);
  status.node = status_;
  status.memory_bytes = need_bytes_;
  status.memory_limit_bytes = options_.memory_limit.bytes;
  return status;
}

std::unique_ptr<control::Subscription> Backend::Subscribe(
    std::function<void(const control::TimedEvent&)> on_event) {
  return events_.Subscribe(std::move(on_event));
}

control::PlanDocument Backend::Plan() {
  absl::MutexLock lock(&mutex_);
  control::PlanDocument document;
  document.yaml = state_.plan;
  document.version = state_.plan_version;
  document.version_in_force = status_.plan_version;
  document.run_id = state_.run_id;
  return document;
}

std::vector<control::Setting> Backend::Settings() {
  std::vector<control::Setting> settings;
  settings.reserve(options_.settings.size());
  for (const config::EffectiveSetting& setting : options_.settings) {
    settings.push_back({setting.key, setting.value, setting.origin});
  }
  return settings;
}

// ------------------------------------------------------------------- plans ----

void Backend::ApplyPlan(control::ApplyPlanOptions options,
                        control::Done<control::ApplyPlanResult> done) {
  setup_.Run([this, options = std::move(options),
              done = std::move(done)] { done(Apply(options, "plan")); },
             [] {});
}

absl::StatusOr<control::ApplyPlanResult> Backend::Apply(
    const control::ApplyPlanOptions& options, const std::string& file_name,
    bool stored) {
  store::NodeState held;
  std::optional<Built> built;
  {
    absl::MutexLock lock(&mutex_);
    held = state_;
    built = built_;
  }
  DFL_ASSIGN_OR_RETURN(core::CheckedPlan checked,
                       config::ParseCheckedPlan(
                           options.yaml, file_name, [&](core::RunPlan& read) {
                             if (read.version == 0) {
                               read.version = held.plan_version + 1;
                             }
                             MintRun(read);
                           }));
  const core::RunPlan& plan = *checked.plan;
  if (options.expected_version &&
      *options.expected_version != held.plan_version) {
    return absl::AbortedError(absl::StrCat(
        "this node holds plan version ", held.plan_version, ", not ",
        *options.expected_version,
        ": somebody else changed it; look at it (dflctl plan show) and try "
        "again"));
  }
  const std::string yaml = config::WritePlan(plan);

  control::ApplyPlanResult result;
  result.version = plan.version;
  result.run_id = plan.run_id;
  result.warnings = core::PlanWarnings(checked);
  if (yaml == held.plan) {
    result.unchanged = true;
    if (!options.dry_run) return result;
  } else if (plan.version <= held.plan_version) {
    return absl::AbortedError(
        absl::StrCat("this node holds plan version ", held.plan_version,
                     " and another document came with version ", plan.version,
                     "; a change must have a higher version"));
  }
  DFL_ASSIGN_OR_RETURN(core::DerivedPlan derived,
                       core::Derive(checked, options_.self));

  std::unique_ptr<ports::Learner> learner;
  if (!built || !(built->spec == plan.model)) {
    DFL_ASSIGN_OR_RETURN(learner, BuildLearner(plan.model));
    built = Built{plan.model, learner->model(), learner->data()};
  }
  DFL_ASSIGN_OR_RETURN(const runtime::MemoryNeed need,
                       runtime::NeedOf(derived, built->model, built->data,
                                       ProgramBytes(built->model)));
  DFL_RETURN_IF_ERROR(MayNeed(need, stored));
  if (options.dry_run) {
    DFL_ASSIGN_OR_RETURN(result.facts,
                         FactsOf(derived, built->model, built->data, need,
                                 options_.memory_limit));
    return result;
  }

  // On disk first: what the node runs survives a crash.
  {
    absl::MutexLock lock(&mutex_);
    state_.plan = yaml;
    state_.plan_version = plan.version;
    if (state_.run_id != plan.run_id)
      state_.desired_phase = DesiredPhase::kIdle;
    state_.run_id = plan.run_id;
  }
  absl::Status adopted = stored ? absl::OkStatus() : SaveState();
  if (adopted.ok()) {
    const bool ran = loop_.RunAndWait([&] {
      std::unique_ptr<AsyncTrainer> trainer;
      AsyncTrainer* borrowed = nullptr;
      if (learner) {
        trainer = std::make_unique<AsyncTrainer>(loop_, std::move(learner));
        borrowed = trainer.get();
      }
      adopted = node_.SetPlan(std::move(derived), std::move(trainer));
      if (adopted.ok() && borrowed != nullptr) trainer_ = borrowed;
      Publish();
    });
    if (!ran) adopted = absl::UnavailableError("the daemon is shutting down");
  }
  if (!adopted.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      held.added_peers = state_.added_peers;  // not the plan's
      state_ = held;
    }
    const absl::Status restored = stored ? absl::OkStatus() : SaveState();
    if (!restored.ok()) log_.Error("store", restored.message());
    return adopted;
  }
  {
    absl::MutexLock lock(&mutex_);
    built_ = std::move(built);
    need_bytes_ = need.total;
  }
  log_.Info("plan-applied",
            absl::StrCat("version ", plan.version, " of ", plan.run_id, " by ",
                         options.who.empty() ? "the settings" : options.who));
  return result;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> Backend::BuildLearner(
    const core::ModelSpec& spec) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::Learner> learner,
                       learners_.Build(spec));
  const ports::ModelInfo& model = learner->model();
  const auto bytes =
      static_cast<uint64_t>(4 * (model.parameter_count + model.buffer_count));
  if (bytes > options_.max_model_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: ", model.kind, " takes ", bytes,
                     " bytes; this node's limits.max_model_bytes allows ",
                     options_.max_model_bytes));
  }
  return learner;
}

absl::Status Backend::MayNeed(const runtime::MemoryNeed& need, bool stored) {
  const absl::Status within = CheckMemory(need, options_.memory_limit);
  if (within.ok()) return within;
  if (stored) {
    log_.Warning("memory", within.message());
    return absl::OkStatus();
  }
  absl::MutexLock lock(&mutex_);
  return need.total <= need_bytes_ ? absl::OkStatus() : within;
}

absl::Status Backend::SaveState() {
  // In the order in which they are written, so that the newest holds.
  const absl::MutexLock one_at_a_time(&store_mutex_);
  store::NodeState state;
  {
    absl::MutexLock lock(&mutex_);
    state = state_;
  }
  return store_.Save(state);
}

absl::Status Backend::Restore(store::NodeState state) {
  const std::string yaml = state.plan;
  const DesiredPhase wanted = state.desired_phase;
  {
    absl::MutexLock lock(&mutex_);
    state_ = state;
    for (const std::string& address : state.added_peers) {
      if (peers_.emplace(address, AddedPeer(address)).second) {
        DialLater(address);
      }
    }
    // Held as from before, so that it is taken over under its own version.
    state_.plan.clear();
    state_.plan_version = 0;
  }
  if (yaml.empty()) return SaveState();
  control::ApplyPlanOptions options;
  options.yaml = yaml;
  options.who = "the state directory";
  auto applied = Apply(options, "the stored plan", /*stored=*/true);
  if (!applied.ok()) {
    absl::MutexLock lock(&mutex_);
    state_ = state;  // nothing is lost: a later daemon may take it up
    return applied.status();
  }
  {
    absl::MutexLock lock(&mutex_);
    state_.desired_phase = wanted;
  }
  // A disk that is full keeps nobody from the run: what is there stays.
  const absl::Status saved = SaveState();
  if (!saved.ok()) {
    log_.Error("store", absl::StrCat("the state is not written, the stored "
                                     "plan is taken up all the same: ",
                                     saved.message()));
  }
  if (wanted == DesiredPhase::kTraining) return OrderNode(TrainAction::kStart);
  return absl::OkStatus();
}

absl::Status Backend::AdoptInitialPlan(const std::string& yaml,
                                       const std::string& file_name,
                                       bool start) {
  control::ApplyPlanOptions options;
  options.yaml = yaml;
  DFL_RETURN_IF_ERROR(Apply(options, file_name).status());
  return start ? Order(TrainAction::kStart) : absl::OkStatus();
}

// ---------------------------------------------------------------- training ----

void Backend::WantPhase(DesiredPhase phase, std::function<void()> stored) {
  {
    absl::MutexLock lock(&mutex_);
    state_.desired_phase = phase;
  }
  setup_.Run(
      [this] {
        const absl::Status saved = SaveState();
        if (!saved.ok()) log_.Error("store", saved.message());
      },
      std::move(stored));
}

absl::Status Backend::OrderNode(TrainAction action) {
  absl::Status status;
  const bool ran = loop_.RunAndWait([&] {
    status = action == TrainAction::kStart ? node_.Start() : node_.Resume();
    Publish();
  });
  if (!ran) return absl::UnavailableError("the daemon is shutting down");
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    state_.desired_phase = DesiredPhase::kTraining;
  }
  return status;
}

absl::Status Backend::Order(TrainAction action) {
  DFL_RETURN_IF_ERROR(OrderNode(action));
  return SaveState();
}

void Backend::Train(TrainAction action, control::Done<ports::Phase> done) {
  loop_.Post([this, action, done = std::move(done)] {
    absl::Status status;
    DesiredPhase wanted = DesiredPhase::kIdle;
    ports::Phase expected = ports::Phase::kTraining;
    switch (action) {
      case TrainAction::kStart:
        status = node_.Start();
        wanted = DesiredPhase::kTraining;
        break;
      case TrainAction::kResume:
        status = node_.Resume();
        wanted = DesiredPhase::kTraining;
        break;
      case TrainAction::kPause:
        status = node_.Pause();
        wanted = DesiredPhase::kPaused;
        expected = ports::Phase::kPaused;
        break;
      case TrainAction::kStop:
        status = node_.Stop();
        wanted = DesiredPhase::kStopped;
        expected = ports::Phase::kStopped;
        break;
    }
    if (!status.ok()) {
      done(status);
      return;
    }
    Publish();
    // Pausing and stopping take effect at the next boundary.
    const ports::Phase now = node_.phase();
    const ports::Phase phase =
        wanted == DesiredPhase::kTraining ? now : expected;
    WantPhase(wanted, [done, phase] { done(phase); });
  });
}

// ------------------------------------------------------------------- peers ----

std::vector<control::PeerAddress> Backend::Peers() {
  absl::MutexLock lock(&mutex_);
  std::vector<control::PeerAddress> peers;
  peers.reserve(peers_.size());
  for (const auto& [name, peer] : peers_) peers.push_back(peer);
  return peers;
}

absl::Status Backend::AddPeer(const std::string& address) {
  const absl::Status parsed = config::ParseHostPort(address).status();
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("peer address \"", address, "\": ", parsed.message(),
                     "; allowed: host:port, IPv6 as [address]:port"));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!peers_.emplace(address, AddedPeer(address)).second) {
      return absl::AlreadyExistsError(
          absl::StrCat(address, " is dialled already"));
    }
    state_.added_peers.push_back(address);
  }
  const absl::Status saved = SaveState();
  if (!saved.ok()) {
    absl::MutexLock lock(&mutex_);
    peers_.erase(address);
    ForgetAddedPeer(address);
    return Annotate(saved, absl::StrCat("peer address ", address,
                                        " cannot be kept, so it is not added"));
  }
  DialLater(address);
  return absl::OkStatus();
}

absl::Status Backend::RemovePeer(const std::string& address) {
  {
    absl::MutexLock lock(&mutex_);
    if (peers_.erase(address) == 0) {
      std::vector<std::string> known;
      for (const auto& [name, peer] : peers_) known.push_back(name);
      const std::string nearest = NearestName(address, known);
      return absl::NotFoundError(absl::StrCat(
          "no peer ", address, " is dialled",
          nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?"),
          known.empty()
              ? "; there are none"
              : absl::StrCat("; there are: ", absl::StrJoin(known, ", "))));
    }
    ForgetAddedPeer(address);
  }
  loop_.Post([this, address] { (void)node_.links().RemoveAddress(address); });
  const absl::Status saved = SaveState();
  return saved.ok() ? saved
                    : Annotate(saved, absl::StrCat(address,
                                                   " is dialled no more, but "
                                                   "will be after a restart"));
}

control::PeerAddress Backend::AddedPeer(const std::string& address) {
  control::PeerAddress peer;
  peer.address = address;
  peer.origin = "control";
  return peer;
}

void Backend::ForgetAddedPeer(const std::string& address) {
  std::vector<std::string>& added = state_.added_peers;
  added.erase(std::remove(added.begin(), added.end(), address), added.end());
}

void Backend::DialLater(const std::string& address) {
  loop_.Post([this, address] { (void)node_.links().AddAddress(address); });
}

// ------------------------------------------------------------- model files ----

void Backend::BeginExport(
    control::ModelFileFormat format,
    control::Done<std::unique_ptr<control::ModelSource>> done) {
  loop_.Post([this, format, done = std::move(done)] {
    node_.CopyModel([this, format,
                     done](absl::StatusOr<runtime::SnapshotPtr> snapshot) {
      if (!snapshot.ok()) {
        done(snapshot.status());
        return;
      }
      if (format == control::ModelFileFormat::kSafetensors) {
        done(MakeSafetensorsSource(*node_.model(), *snapshot,
                                   node_.plan()->run_id));
        return;
      }
      // LibTorch writes the file, on its thread.
      auto file = std::make_shared<absl::StatusOr<std::string>>(std::string());
      trainer_->RunWithLearner(
          [this, snapshot, file](ports::Learner& learner) {
            std::string bytes;
            const absl::Status written = learners_.ExportTorchScript(
                learner, (*snapshot)->parameters, (*snapshot)->buffers,
                [&bytes](absl::string_view piece) {
                  bytes.append(piece.data(), piece.size());
                  return absl::OkStatus();
                });
            if (written.ok()) {
              *file = std::move(bytes);
            } else {
              *file = written;
            }
          },
          [snapshot, file, done] {
            if (!file->ok()) {
              done(file->status());
            } else {
              done(MakeBytesSource(*std::move(*file), (*snapshot)->step));
            }
          });
    });
  });
}

absl::StatusOr<std::unique_ptr<control::ModelSink>> Backend::BeginImport(
    control::ModelFileFormat format, int64_t total_bytes) {
  if (format != control::ModelFileFormat::kSafetensors) {
    return absl::InvalidArgumentError(
        "only safetensors files can be imported; a TorchScript model is named "
        "in the plan (model.path)");
  }
  absl::MutexLock lock(&mutex_);
  if (!built_) {
    return absl::FailedPreconditionError(
        "there is no run plan yet, so no model to import into; apply one "
        "first: dflctl plan apply FILE");
  }
  return MakeSafetensorsSink(
      built_->model, total_bytes,
      [this](std::shared_ptr<const runtime::Snapshot> model,
             control::Done<control::ImportResult> done) {
        loop_.Post([this, model = std::move(model), done = std::move(done)] {
          const int64_t count = static_cast<int64_t>(model->parameters.size());
          node_.ReplaceModel(model, [this, count, done](absl::Status status) {
            if (!status.ok()) {
              done(status);
              return;
            }
            done(control::ImportResult{count, node_.Status().step});
          });
        });
      });
}

}  // namespace dfl::app
