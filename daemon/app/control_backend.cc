#include "daemon/app/control_backend.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/new_data/new_data.h"
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
      "this node is on no network and takes no records");
}

std::vector<control::Setting> ToControl(
    const std::vector<config::EffectiveSetting>& settings) {
  std::vector<control::Setting> shown;
  shown.reserve(settings.size());
  for (const config::EffectiveSetting& setting : settings) {
    shown.push_back({setting.key, setting.value, setting.origin});
  }
  return shown;
}

void Show(const runtime::KeptPlan& plan, control::PlanDocument& document) {
  document.yaml = plan.text;
  document.version = plan.version;
  document.run_id = plan.run_id;
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
      archive_(options_.files),
      plans_(options_.self, options_.limits, loop, node, options_.follower,
             learners, keeper_, log, options_.steps, [this] { OnPlanSet(); }),
      addresses_(options_.peers, loop, node, keeper_, options_.names),
      models_(loop, node, learners, plans_),
      checkpoints_(loop, node, plans_, options_.checkpoints,
                   options_.checkpoint_worker, [this] { Publish(); }),
      members_(options_.self, loop, options_.membership,
               [this] { return Status(); }),
      training_(loop, node, keeper_, log, [this] { Publish(); }),
      turns_(setup_),
      setup_(loop, "dfld-setup") {
  if (!options_.publish.path.empty()) {
    publisher_ = std::make_unique<Publisher>(options_.publish, loop, node,
                                             models_, events, log);
  }
  const absl::MutexLock lock(&mutex_);
  settings_ = ToControl(options_.settings);
  status_.node = options_.self;
}

ControlBackend::~ControlBackend() {
  if (options_.new_data != nullptr) options_.new_data->Disconnect();
  setup_.Stop();
  std::unique_ptr<Publisher> publisher;
  loop_.RunAndWait([&] { publisher = std::move(publisher_); });
  publisher.reset();  // waits for a file, which the loop must not
  // What the node or the loop keeps for later finds nobody here. A loop that
  // has ended runs nothing any more.
  loop_.RunAndWait([this] {
    if (options_.orders != nullptr) options_.orders->Disconnect();
    models_.End();
    checkpoints_.End();
  });
}

// ---------------------------------------------------------------- reading ----

void ControlBackend::Publish() {
  runtime::NodeStatus status = node_.Status();
  if (options_.new_data) status.data_error = options_.new_data->fault();
  addresses_.Refresh();
  members_.Publish(status);
  if (publisher_ != nullptr) publisher_->Look(status);
  if (status.plan_version != noted_in_force_) {
    noted_in_force_ = status.plan_version;
    setup_.Run(
        [this, version = status.plan_version] { keeper_.NoteInForce(version); },
        [] {});
  }
  if (options_.orders != nullptr) {
    options_.orders->Tick(status, options_.follower == nullptr
                                      ? absl::OkStatus()
                                      : options_.follower->problem());
  }
  const absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
}

control::VersionInfo ControlBackend::Version() {
  control::VersionInfo info;
  info.version = kVersion;
  info.node = options_.self;
  info.libraries = learners_.Libraries();
  if (options_.security != nullptr) {
    info.cluster = options_.security->cluster();
  } else {
    info.insecure_cluster = options_.cluster;
  }
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
  if (publisher_ != nullptr) publisher_->Tell(status);
  plans_.learner().Tell(status);
  const absl::MutexLock lock(&mutex_);
  if (!stored_fault_.empty()) status.warnings.push_back(stored_fault_);
  status.node = status_;
  return status;
}

std::unique_ptr<control::Subscription> ControlBackend::Subscribe(
    std::function<void(const control::TimedEvent&)> on_event) {
  return events_.Subscribe(std::move(on_event));
}

control::PlanDocument ControlBackend::Plan() {
  control::PlanDocument document;
  Show(*keeper_.known(), document);
  const absl::MutexLock lock(&mutex_);
  document.version_in_force = status_.plan_version;
  document.kept_versions = archive_.Versions();
  return document;
}

absl::StatusOr<control::PlanDocument> ControlBackend::PastPlan(
    uint64_t version) {
  control::PlanDocument document = Plan();
  if (version == document.version && version != 0) return document;
  DFL_ASSIGN_OR_RETURN(const auto past, archive_.Find(version));
  Show(*past, document);
  return document;
}

std::vector<control::Setting> ControlBackend::Settings() {
  const absl::MutexLock lock(&mutex_);
  return settings_;
}

void ControlBackend::SetSettings(
    const std::vector<config::EffectiveSetting>& settings,
    const std::vector<std::string>& peers) {
  addresses_.SetSettings(peers);
  const absl::MutexLock lock(&mutex_);
  settings_ = ToControl(settings);
}

// ------------------------------------------------------------------ plans ----

void ControlBackend::ApplyPlan(control::ApplyPlanOptions options,
                               control::Done<control::ApplyPlanResult> done) {
  if (!options.record.empty() && options_.orders == nullptr) {
    return done(TakesNoRecords());
  }
  const control::Begin begin = options.begin;
  turns_.Run<control::ApplyPlanResult>(
      begin, [this, options = std::move(options)] { return TakePlan(options); },
      std::move(done));
}

absl::StatusOr<control::ApplyPlanResult> ControlBackend::TakePlan(
    const control::ApplyPlanOptions& options) {
  return options_.orders == nullptr ? plans_.Apply(options, "plan")
                                    : options_.orders->ApplyPlan(options);
}

void ControlBackend::OnPlanSet() {
  bool start = false;
  if (node_.plan() != nullptr) {
    const absl::MutexLock lock(&mutex_);
    stored_fault_.clear();
    start = node_.plan()->run_id == owed_run_;
    owed_run_.clear();
  }
  KeepPlan();
  const bool drains = options_.orders != nullptr && options_.orders->draining();
  if (start && !drains) {
    const absl::Status started = node_.Start();
    log_.Keep(started.ok() ? config::LogLevel::kInfo : config::LogLevel::kError,
              "plan",
              absl::StrCat("training was wanted before the plan could not be "
                           "taken up: ",
                           started.ok() ? "it goes on" : started.message()));
  }
  Publish();
}

void ControlBackend::KeepPlan() {
  setup_.Run(
      [this] {
        const auto known = keeper_.known();
        if (known->text.empty()) return;
        const absl::Status kept = archive_.Keep(known);
        if (!kept.ok()) {
          log_.Error("store", absl::StrCat("the plan is not kept for a "
                                           "rollback: ",
                                           kept.message()));
        }
      },
      [] {});
}

void ControlBackend::GetData(std::string yaml, control::Begin begin,
                             control::Done<control::NodeData> done) {
  turns_.Run<control::NodeData>(
      std::move(begin),
      [this, yaml = std::move(yaml)] { return plans_.Data(yaml); },
      std::move(done));
}

void ControlBackend::PutRecord(std::string record, control::Caller,
                               control::Done<control::PutRecordResult> done) {
  if (options_.orders == nullptr) return done(TakesNoRecords());
  options_.orders->PutRecord(std::move(record), std::move(done));
}

std::vector<control::RecordInfo> ControlBackend::ListRecords() {
  return options_.orders ? options_.orders->List()
                         : std::vector<control::RecordInfo>();
}

absl::Status ControlBackend::Restore() {
  addresses_.DialKept();
  if (keeper_.known()->text.empty()) {
    return keeper_.Do([](RunKeeper& keeper) { return keeper.Save(); });
  }
  const DesiredPhase wanted =
      keeper_.Do([](RunKeeper& keeper) { return keeper.desired_phase(); });
  const absl::Status taken = plans_.TakeUpStored();
  if (!taken.ok()) {
    const absl::MutexLock lock(&mutex_);
    stored_fault_ =
        absl::StrCat("the stored plan is not taken up: ", taken.message(),
                     "; mend that and apply the plan again (dflctl plan show), "
                     "or start dfld anew");
    if (wanted == DesiredPhase::kTraining) {
      owed_run_ = keeper_.known()->run_id;
    }
    return taken;
  }
  loop_.RunAndWait([&] {
    (void)node_.TakeUpCheckpoint(
        wanted == DesiredPhase::kPaused    ? ports::Phase::kPaused
        : wanted == DesiredPhase::kStopped ? ports::Phase::kStopped
                                           : ports::Phase::kIdle);
  });
  return wanted == DesiredPhase::kTraining ? training_.Start()
                                           : absl::OkStatus();
}

absl::Status ControlBackend::AdoptInitialPlan(const std::string& yaml,
                                              const std::string& file_name,
                                              bool start) {
  control::ApplyPlanOptions options;
  options.yaml = yaml;
  DFL_ASSIGN_OR_RETURN(const control::ApplyPlanResult applied,
                       plans_.Apply(options, file_name));
  if (!start) return absl::OkStatus();
  DFL_RETURN_IF_ERROR(training_.Start());
  return keeper_.Do([&](RunKeeper& keeper) {
    return keeper.Want(DesiredPhase::kTraining, applied.run_id);
  });
}

void ControlBackend::Connect() {
  if (options_.orders) options_.orders->Connect(node_, plans_, keeper_, setup_);
  if (options_.new_data) options_.new_data->Connect(plans_, setup_);
}

// --------------------------------------------------------------- training ----

void ControlBackend::Train(TrainAction action, control::Begin begin,
                           control::Done<ports::Phase> done) {
  loop_.Post([this, action, begin = std::move(begin), done = std::move(done)] {
    if (begin && !begin()) {
      return done(absl::CancelledError("nobody waits for this order any more"));
    }
    const bool trains =
        action == TrainAction::kStart || action == TrainAction::kResume;
    if (trains && options_.orders != nullptr && options_.orders->draining()) {
      return done(absl::FailedPreconditionError(
          absl::StrCat("the node drains; have it take part again first: dflctl "
                       "node undrain ",
                       options_.self.name())));
    }
    training_.Give(action, setup_, done);
  });
}

}  // namespace dfl::app
