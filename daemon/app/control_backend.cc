#include "daemon/app/control_backend.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/model_files.h"
#include "daemon/app/node_orders.h"
#include "daemon/app/orders.h"
#include "daemon/app/security.h"
#include "daemon/app/version.h"
#include "daemon/base/status_macros.h"

namespace dfl::app {
namespace {

using control::TrainAction;
using runtime::DesiredPhase;
using runtime::RunKeeper;

absl::Status TakesNoRecords() {
  return absl::FailedPreconditionError(
      "this node is insecure and takes no signed records; set `security: tls` "
      "and give it a certificate");
}

}  // namespace

ControlBackend::ControlBackend(BackendOptions options, EventLoop& loop,
                               runtime::Node& node, LearnerFactory& learners,
                               RunKeeper keeper, EventHub& events, Logger& log)
    : options_(std::move(options)),
      loop_(loop),
      node_(node),
      learners_(learners),
      events_(events),
      log_(log),
      started_(loop.Now()),
      keeper_(std::move(keeper)),
      plans_(options_.self, options_.limits, loop, node, learners, keeper_, log,
             options_.steps, [this] { Publish(); }),
      addresses_(options_.peers, loop, node, keeper_),
      setup_(loop, "dfld-setup") {
  const absl::MutexLock lock(&mutex_);
  status_.node = options_.self;
}

ControlBackend::~ControlBackend() { setup_.Stop(); }

// ---------------------------------------------------------------- reading ----

void ControlBackend::Publish() {
  runtime::NodeStatus status = node_.Status();
  addresses_.Refresh();
  if (status.plan_version != noted_in_force_) {
    noted_in_force_ = status.plan_version;
    setup_.Run(
        [this, version = status.plan_version] {
          keeper_.Do([version](RunKeeper& keeper) {
            keeper.NoteInForce(version);
            return true;
          });
        },
        [] {});
  }
  const absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
}

control::VersionInfo ControlBackend::Version() {
  control::VersionInfo info;
  info.version = kVersion;
  info.node = options_.self;
  info.libraries = learners_.Libraries();
  if (options_.security != nullptr) info.cluster = options_.security->cluster();
  return info;
}

control::DaemonStatus ControlBackend::Status() {
  control::DaemonStatus status;
  status.version = kVersion;
  status.insecure = options_.insecure;
  status.uptime = loop_.Now() - started_;
  status.peer_addresses = options_.peer_addresses;
  if (options_.insecure) {
    status.warnings.push_back(kInsecureText);
  }
  if (options_.security != nullptr) options_.security->Tell(status);
  if (options_.orders != nullptr) options_.orders->Tell(status);
  status.memory_bytes = plans_.need_bytes();
  status.memory_limit_bytes = options_.limits.memory.bytes;
  const absl::MutexLock lock(&mutex_);
  status.node = status_;
  return status;
}

std::unique_ptr<control::Subscription> ControlBackend::Subscribe(
    std::function<void(const control::TimedEvent&)> on_event) {
  return events_.Subscribe(std::move(on_event));
}

control::PlanDocument ControlBackend::Plan() {
  const std::shared_ptr<const runtime::KeptPlan> known = keeper_.known();
  control::PlanDocument document;
  document.yaml = known->text;
  document.version = known->version;
  document.run_id = known->run_id;
  const absl::MutexLock lock(&mutex_);
  document.version_in_force = status_.plan_version;
  return document;
}

std::vector<control::Setting> ControlBackend::Settings() {
  std::vector<control::Setting> settings;
  settings.reserve(options_.settings.size());
  for (const config::EffectiveSetting& setting : options_.settings) {
    settings.push_back({setting.key, setting.value, setting.origin});
  }
  return settings;
}

// ------------------------------------------------------------------ plans ----

void ControlBackend::ApplyPlan(control::ApplyPlanOptions options,
                               control::Done<control::ApplyPlanResult> done) {
  if (!options.record.empty() && options_.orders == nullptr) {
    return done(TakesNoRecords());
  }
  setup_.Run(
      [this, options = std::move(options), done = std::move(done)] {
        done(options.record.empty() ? plans_.Apply(options, "plan")
                                    : options_.orders->ApplyPlan(options));
      },
      [] {});
}

void ControlBackend::PutRecord(std::string record, control::Caller,
                               control::Done<control::PutRecordResult> done) {
  if (options_.orders == nullptr) return done(TakesNoRecords());
  options_.orders->PutRecord(std::move(record), std::move(done));
}

std::vector<control::RecordInfo> ControlBackend::ListRecords() {
  if (options_.orders == nullptr) return {};
  return options_.orders->List();
}

absl::Status ControlBackend::Restore() {
  addresses_.DialKept();
  if (keeper_.known()->text.empty()) {
    return keeper_.Do([](RunKeeper& keeper) { return keeper.Save(); });
  }
  DFL_RETURN_IF_ERROR(plans_.TakeUpStored());
  const DesiredPhase wanted =
      keeper_.Do([](RunKeeper& keeper) { return keeper.desired_phase(); });
  return wanted == DesiredPhase::kTraining ? StartNode() : absl::OkStatus();
}

absl::Status ControlBackend::AdoptInitialPlan(const std::string& yaml,
                                              const std::string& file_name,
                                              bool start) {
  control::ApplyPlanOptions options;
  options.yaml = yaml;
  DFL_ASSIGN_OR_RETURN(const control::ApplyPlanResult applied,
                       plans_.Apply(options, file_name));
  if (!start) return absl::OkStatus();
  DFL_RETURN_IF_ERROR(StartNode());
  return keeper_.Do([&](RunKeeper& keeper) {
    return keeper.Want(DesiredPhase::kTraining, applied.run_id);
  });
}

void ControlBackend::ObeyRecords() {
  if (options_.orders == nullptr) return;
  options_.orders->Connect(node_, plans_, keeper_, setup_);
}

// --------------------------------------------------------------- training ----

absl::Status ControlBackend::StartNode() {
  absl::Status status;
  const bool ran = loop_.RunAndWait([&] {
    status = node_.Start();
    Publish();
  });
  return ran ? status : absl::UnavailableError("the daemon is shutting down");
}

void ControlBackend::Train(TrainAction action,
                           control::Done<ports::Phase> done) {
  loop_.Post([this, action, done = std::move(done)] {
    const NodeOrder order = Give(node_, action);
    if (!order.status.ok()) {
      done(order.status);
      return;
    }
    Publish();
    // Answered to when it is on disk, or could not be written.
    auto saved = std::make_shared<absl::Status>();
    setup_.Run(
        [this, wanted = order.wanted, run = node_.plan()->run_id, saved] {
          *saved = keeper_.Do(
              [&](RunKeeper& keeper) { return keeper.Want(wanted, run); });
          if (!saved->ok()) log_.Error("store", saved->message());
        },
        [done, phase = order.phase, saved] {
          if (saved->ok()) return done(phase);
          done(Annotate(*saved,
                        "the node obeys, but will not know of it after a "
                        "restart"));
        });
  });
}

// ------------------------------------------------------------------ peers ----

std::vector<control::PeerAddress> ControlBackend::Peers() {
  return addresses_.List();
}

absl::Status ControlBackend::AddPeer(const std::string& address) {
  return addresses_.Add(address);
}

absl::Status ControlBackend::RemovePeer(const std::string& address) {
  return addresses_.Remove(address);
}

// ------------------------------------------------------------ model files ----

void ControlBackend::BeginExport(
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
      plans_.trainer()->RunWithLearner(
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

absl::StatusOr<std::unique_ptr<control::ModelSink>> ControlBackend::BeginImport(
    control::ModelFileFormat format, int64_t total_bytes) {
  if (format != control::ModelFileFormat::kSafetensors) {
    return absl::InvalidArgumentError(
        "only safetensors files can be imported; a TorchScript model is named "
        "in the plan (model.path)");
  }
  const std::optional<ports::ModelInfo> model = plans_.model();
  if (!model) {
    return absl::FailedPreconditionError(
        "there is no run plan yet, so no model to import into; apply one "
        "first: dflctl plan apply FILE");
  }
  return MakeSafetensorsSink(
      *model, total_bytes,
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
