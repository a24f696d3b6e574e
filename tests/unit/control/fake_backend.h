// A scripted control::Backend: holds a status, a plan and a model in memory,
// answers at once on the calling thread, and can be told to keep quiet or to
// fail.
#ifndef DFL_TESTS_UNIT_CONTROL_FAKE_BACKEND_H_
#define DFL_TESTS_UNIT_CONTROL_FAKE_BACKEND_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/sha256.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/control/backend.h"
#include "daemon/control/event_proto.h"
#include "daemon/control/member_proto.h"
#include "dfl/record/v1/record.pb.h"
#include "tests/unit/control/fake_checkpoints.h"

namespace dfl::control {

// A status with a value in every field, as node `name`.
inline DaemonStatus SampleStatus(const std::string& name) {
  DaemonStatus status;
  runtime::NodeStatus& node = status.node;
  node.node = NodeId(name);
  node.incarnation = 0xfedcba9876543210;
  node.phase = ports::Phase::kTraining;
  node.phase_reason = "";
  node.run_id = "00c0ffee00c0ffee";
  node.plan_version = 2;
  node.pending_plan_version = 3;
  node.algorithm = "pame";
  node.knobs = {{"kappa", core::IntRange{5, 10}},
                {"nu", 0.5},
                {"some_flag", true},
                {"some_text", std::string("polyak")},
                {"t0", int64_t{7}}};
  node.topology = "ring";
  node.weights = "metropolis";
  node.spectral_gap = 0.25;
  node.member_count = 4;
  node.format = "random int8";
  node.model = "cnn";
  node.contract["model"] = "ab12";
  node.parameter_count = 268362;
  node.buffer_count = 3;
  node.train_rows = 15000;
  node.test_rows = 10000;
  node.step = 1000;
  node.stop_steps = 4000;
  node.round = 40;
  node.stop_rounds = 160;
  node.epochs = 2.5;
  node.stop_epochs = 10;
  node.gradients = 1001;
  node.failed_gradients = 1;
  node.skipped_batches = 3;
  node.far_models = 7;
  node.loss = 0.5;
  node.evaluated = true;
  node.evaluated_step = 800;
  node.evaluation.loss = 0.625;
  node.evaluation.accuracy = 0.75;
  node.evaluation.macro_f1 = 0.5;
  node.evaluation.rows = 2000;
  node.steps_per_second = 32.5;
  node.training_time = absl::Seconds(31);
  node.longest_step_gap = absl::Milliseconds(250);
  node.gauges = {{"m", 5}, {"sigma", 4.5}};
  node.bytes_sent = 1234567;
  node.bytes_received = 999;
  node.dense_bytes_sent = 45000000;
  node.models_sent = 12;
  node.models_received = 11;
  node.missed = 2;
  node.rejected = {{"bad message", 1}};
  node.alone = "";
  node.last_error = "";
  runtime::PeerStatus peer;
  peer.node = NodeId("box-2");
  peer.address = "10.0.0.2:7600";
  peer.neighbour = true;
  peer.linked = true;
  peer.weight = 0.25;
  peer.phase = ports::Phase::kPaused;
  peer.step = 998;
  peer.plan_version = 2;
  peer.bytes_sent = 100;
  peer.bytes_received = 200;
  peer.models_sent = 3;
  peer.models_received = 4;
  peer.missed = 5;
  peer.rejected = 6;
  peer.not_mixing = "it is paused";
  peer.disagrees = {"classes"};
  runtime::PeerStatus down = peer;
  down.node = NodeId("box-3");
  down.linked = false;
  down.last_error = "connection refused";
  node.peers = {peer, down};
  status.version = "0.1.0";
  status.insecure = false;
  status.uptime = absl::Seconds(60);
  status.peer_addresses = {"10.0.0.1:7600"};
  status.memory_bytes = 5000000;
  status.memory_limit_bytes = 8000000;
  status.cluster = "plant-4";
  status.certificate_days = 364.5;
  status.refused = {{"no-certificate", 3}};
  status.banned = {"spiffe://plant-4/node/box-9"};
  status.learner = "LibTorch 2.6.0";
  status.threads = 2;
  status.threads_reason = "2 of 2 processors are idle";
  return status;
}

// Box-1, which answers, box-2 to box-4, which are there, and box-5, which is
// dead: a value in every field of one of them.
inline MemberTable SampleMembers() {
  MemberTable table;
  table.self = NodeId("box-1");
  for (int i = 1; i <= 5; ++i) {
    MemberInfo member;
    member.node = NodeId(absl::StrCat("box-", i));
    member.labels = {{"site", i % 2 == 1 ? "north" : "south"}};
    member.addresses = {absl::StrCat("10.0.0.", i, ":7600")};
    member.rows = 1000 * i;
    member.plan_version = 2;
    member.plan_hash = 0x00c0ffee00c0ffee;
    member.linked = i == 2;
    member.in_state = absl::Seconds(10 * i);
    member.pace = "lan";
    member.starts = 3;
    table.members.push_back(std::move(member));
  }
  table.members[0].self = true;
  table.members[1].state = MemberState::kDegraded;
  table.members[1].reason = "the model's file is missing";
  table.members[2].suspect = true;
  table.members[3].participation = core::Participation::kObserve;
  table.members[4].state = MemberState::kDead;
  return table;
}

class FakeBackend : public Backend {
 public:
  explicit FakeBackend(const std::string& name = "box-1")
      : status_(SampleStatus(name)), checkpoints_(name) {}

  // Ten classes of images, as they are.
  static NodeData SampleData() {
    NodeData data;
    for (int i = 0; i < 10; ++i) {
      data.offer.classes.push_back(absl::StrCat(i));
      data.report.classes.push_back({absl::StrCat(i), 1500, 1000});
    }
    data.offer.shape = {1, 28, 28};
    data.offer.input.divide = 255;
    data.offer.loss = "cross-entropy";
    data.offer.model = std::string(64, 'a');
    data.report.format = "idx";
    data.report.train_rows = 15000;
    data.report.test_rows = 10000;
    data.report.features = {{"", 0, 255, 33.5, 0}};
    data.report.feature_count = 784;
    data.report.warnings = {"feature 0 never varies"};
    return data;
  }

  // ---- what a test scripts ----

  void SetStatus(DaemonStatus status) {
    absl::MutexLock lock(&mutex_);
    status_ = std::move(status);
  }
  void SetPlan(PlanDocument plan) {
    absl::MutexLock lock(&mutex_);
    plan_ = std::move(plan);
  }
  // From now on it is of a secured network and takes signed plans only.
  void SetCluster(const std::string& cluster) {
    absl::MutexLock lock(&mutex_);
    cluster_ = cluster;
  }
  // What ListRecords answers.
  void SetRecords(std::vector<RecordInfo> records) {
    absl::MutexLock lock(&mutex_);
    listed_ = std::move(records);
  }
  // What GetData answers; FailData: that it fails.
  void SetData(NodeData data) {
    absl::MutexLock lock(&mutex_);
    data_ = std::move(data);
  }
  void FailData(absl::Status failure) {
    absl::MutexLock lock(&mutex_);
    data_failure_ = std::move(failure);
  }
  // Train, ApplyPlan and PutRecord fail with it.
  void SetFailure(absl::Status failure) {
    absl::MutexLock lock(&mutex_);
    failure_ = std::move(failure);
  }
  // Train's answers are kept until ReleaseTrain.
  void KeepTrainQuiet() {
    absl::MutexLock lock(&mutex_);
    quiet_ = true;
  }
  void ReleaseTrain() {
    std::vector<Done<ports::Phase>> kept;
    {
      absl::MutexLock lock(&mutex_);
      kept.swap(kept_);
    }
    for (const auto& done : kept) done(ports::Phase::kPaused);
  }
  // Whether the orders that were kept may still be carried out.
  std::vector<bool> MayBegin() {
    std::vector<Begin> begins;
    {
      absl::MutexLock lock(&mutex_);
      begins = begins_;
    }
    std::vector<bool> may;
    for (const Begin& begin : begins) may.push_back(begin());
    return may;
  }
  // Plans are taken and wait for a boundary that never comes.
  void NeverReachABoundary() {
    absl::MutexLock lock(&mutex_);
    no_boundary_ = true;
  }
  // The other members of the sample reach one all the same.
  void LetOthersReachABoundary() {
    absl::MutexLock lock(&mutex_);
    others_adopt_ = true;
  }
  // What PastPlan answers for that version.
  void SetPastPlan(PlanDocument plan) {
    absl::MutexLock lock(&mutex_);
    past_plans_.insert_or_assign(plan.version, std::move(plan));
  }
  void SetModelFile(std::string bytes) {
    absl::MutexLock lock(&mutex_);
    model_file_ = std::move(bytes);
  }
  // How many events were forgotten before those that Emit adds.
  void SetForgottenEvents(int64_t count) {
    absl::MutexLock lock(&mutex_);
    kept_events_.forgotten = count;
  }
  void SetMembers(MemberTable members) {
    absl::MutexLock lock(&mutex_);
    members_ = std::move(members);
    members_adopt_ = false;
  }
  // What `node` answers to AskMember and PingMember from now on, instead of the
  // status SampleStatus(node).
  void SetReport(const std::string& node, absl::StatusOr<std::string> report) {
    absl::MutexLock lock(&mutex_);
    reports_.insert_or_assign(node, std::move(report));
  }
  // Answers of members are kept until ReleaseAnswers, at most `count` of them.
  void KeepAnswers() {
    absl::MutexLock lock(&mutex_);
    keep_answers_ = true;
  }
  void ReleaseAnswers(size_t count) {
    std::vector<std::function<void()>> released;
    {
      absl::MutexLock lock(&mutex_);
      count = std::min(count, kept_answers_.size());
      const auto end = kept_answers_.begin() + static_cast<ptrdiff_t>(count);
      released.assign(kept_answers_.begin(), end);
      kept_answers_.erase(kept_answers_.begin(), end);
    }
    for (const auto& answer : released) answer();
  }
  void Emit(const ports::NodeEvent& event) {
    std::vector<std::function<void(const TimedEvent&)>> listeners;
    {
      absl::MutexLock lock(&mutex_);
      if (IsWatched(event)) {
        kept_events_.events.push_back(
            {absl::FromUnixSeconds(1700000000), event});
      }
      for (const auto& [id, listener] : listeners_) {
        listeners.push_back(listener);
      }
    }
    for (const auto& listener : listeners) {
      listener({absl::FromUnixSeconds(1700000000), event});
    }
  }

  // ---- what a test reads ----

  PlanDocument plan() const {
    absl::MutexLock lock(&mutex_);
    return plan_;
  }
  std::vector<std::string> orders() const {
    absl::MutexLock lock(&mutex_);
    return orders_;
  }
  // All that PutRecord and ApplyPlan were brought, serialised.
  std::vector<std::string> records() const {
    absl::MutexLock lock(&mutex_);
    return records_;
  }
  // The plans that GetData was asked about.
  std::vector<std::string> asked() const {
    absl::MutexLock lock(&mutex_);
    return asked_;
  }
  // Who called ApplyPlan or PutRecord last.
  Caller last_caller() const {
    absl::MutexLock lock(&mutex_);
    return last_caller_;
  }
  std::string imported() const {
    absl::MutexLock lock(&mutex_);
    return imported_;
  }
  ImportRequest import_request() const {
    absl::MutexLock lock(&mutex_);
    return import_request_;
  }
  // The questions to members, as "box-2 in 5s", in their order.
  std::vector<std::string> questions() const {
    absl::MutexLock lock(&mutex_);
    return questions_;
  }
  int kept_answers() const {
    absl::MutexLock lock(&mutex_);
    return static_cast<int>(kept_answers_.size());
  }
  // How often Members was asked.
  int member_looks() const {
    absl::MutexLock lock(&mutex_);
    return member_looks_;
  }
  int open_files() const {
    absl::MutexLock lock(&mutex_);
    return open_files_;
  }
  int subscribers() const {
    absl::MutexLock lock(&mutex_);
    return static_cast<int>(listeners_.size());
  }

  // ---- Backend ----

  VersionInfo Version() override {
    absl::MutexLock lock(&mutex_);
    VersionInfo info;
    info.version = "0.1.0";
    info.node = status_.node.node;
    info.libraries = {"torch 2.6.0"};
    info.cluster = cluster_;
    return info;
  }

  DaemonStatus Status() override {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

  std::unique_ptr<Subscription> Subscribe(
      std::function<void(const TimedEvent&)> on_event) override {
    absl::MutexLock lock(&mutex_);
    listeners_[next_listener_] = std::move(on_event);
    return std::make_unique<FakeSubscription>(*this, next_listener_++);
  }

  PlanDocument Plan() override {
    PlanDocument document = plan();
    const absl::MutexLock lock(&mutex_);
    for (const auto& [version, past] : past_plans_) {
      document.kept_versions.push_back(version);
    }
    return document;
  }
  absl::StatusOr<PlanDocument> PastPlan(uint64_t version) override {
    const absl::MutexLock lock(&mutex_);
    const auto found = past_plans_.find(version);
    if (found == past_plans_.end()) {
      return absl::NotFoundError("this node keeps no plan of that version");
    }
    return found->second;
  }

  // Takes the content of a record as it is; no signature is checked.
  void ApplyPlan(ApplyPlanOptions options,
                 Done<ApplyPlanResult> done) override {
    if (!options.record.empty()) {
      record::v1::SignedRecord record;
      if (!record.ParseFromString(options.record)) {
        return done(absl::InvalidArgumentError("no record"));
      }
      options.yaml = record.content();
    }
    done(Apply(options));
  }

  void GetData(std::string yaml, Begin /*begin*/,
               Done<NodeData> done) override {
    absl::StatusOr<NodeData> answer = NodeData();
    {
      absl::MutexLock lock(&mutex_);
      asked_.push_back(std::move(yaml));
      answer = data_;
      if (!data_failure_.ok()) answer = data_failure_;
    }
    done(std::move(answer));
  }

  void PutRecord(std::string record, Caller caller,
                 Done<PutRecordResult> done) override {
    PutRecordResult result;
    absl::Status failure;
    {
      absl::MutexLock lock(&mutex_);
      failure = failure_;
      last_caller_ = std::move(caller);
      result.unchanged =
          std::find(records_.begin(), records_.end(), record) != records_.end();
      records_.push_back(std::move(record));
    }
    if (!failure.ok()) return done(failure);
    done(result);
  }

  std::vector<RecordInfo> ListRecords() override {
    absl::MutexLock lock(&mutex_);
    return listed_;
  }

  void Train(TrainAction action, Begin begin,
             Done<ports::Phase> done) override {
    absl::StatusOr<ports::Phase> phase = ports::Phase::kTraining;
    {
      absl::MutexLock lock(&mutex_);
      orders_.push_back(absl::StrCat("train ", static_cast<int>(action)));
      if (quiet_) {
        kept_.push_back(std::move(done));
        begins_.push_back(std::move(begin));
        return;
      }
      if (!failure_.ok()) {
        phase = failure_;
      } else if (action == TrainAction::kPause) {
        phase = ports::Phase::kPaused;
      } else if (action == TrainAction::kStop) {
        phase = ports::Phase::kStopped;
      }
    }
    done(std::move(phase));
  }

  std::vector<PeerAddress> Peers() override {
    absl::MutexLock lock(&mutex_);
    return peers_;
  }

  absl::Status AddPeer(const std::string& address) override {
    absl::MutexLock lock(&mutex_);
    if (address.find(':') == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("peer \"", address, "\" has no port"));
    }
    for (const PeerAddress& peer : peers_) {
      if (peer.address == address) {
        return absl::AlreadyExistsError("dialled already");
      }
    }
    PeerAddress added;
    added.address = address;
    added.origin = "control";
    peers_.push_back(added);
    return absl::OkStatus();
  }

  absl::Status RemovePeer(const std::string& address) override {
    absl::MutexLock lock(&mutex_);
    const auto gone = std::remove_if(
        peers_.begin(), peers_.end(),
        [&](const PeerAddress& peer) { return peer.address == address; });
    if (gone == peers_.end()) {
      return absl::NotFoundError(
          absl::StrCat("peer \"", address, "\" is not dialled"));
    }
    peers_.erase(gone, peers_.end());
    return absl::OkStatus();
  }

  KeptEvents Events() override {
    absl::MutexLock lock(&mutex_);
    return kept_events_;
  }

  MemberTable Members() override {
    absl::MutexLock lock(&mutex_);
    ++member_looks_;
    return members_;
  }

  void AskMember(NodeId node, absl::Duration within,
                 Done<std::string> done) override {
    absl::StatusOr<std::string> answer =
        MemberReport(SampleStatus(node.name()), absl::Milliseconds(250));
    {
      absl::MutexLock lock(&mutex_);
      questions_.push_back(
          absl::StrCat(node.name(), " in ", absl::FormatDuration(within)));
      const auto scripted = reports_.find(node.name());
      if (scripted != reports_.end()) answer = scripted->second;
      if (keep_answers_) {
        kept_answers_.push_back([done, answer] { done(answer); });
        return;
      }
    }
    done(std::move(answer));
  }

  // A millisecond over two links, or how AskMember fails.
  void PingMember(NodeId node, absl::Duration within,
                  Done<MemberPing> done) override {
    AskMember(node, within, [done](absl::StatusOr<std::string> answer) {
      if (!answer.ok()) return done(answer.status());
      done(MemberPing{absl::Milliseconds(1), 2});
    });
  }

  std::vector<Setting> Settings() override {
    return {{"name", "box-1", "/etc/dfld/dfld.yaml:1"},
            {"log.level", "info", "default"}};
  }

  void BeginExport(ModelFileFormat format,
                   Done<std::unique_ptr<ModelSource>> done) override {
    if (format == ModelFileFormat::kTorchScript) {
      return done(absl::InvalidArgumentError(
          "a cnn has no TorchScript file; export safetensors"));
    }
    std::string bytes;
    {
      absl::MutexLock lock(&mutex_);
      bytes = model_file_;
    }
    done(std::make_unique<FakeSource>(*this, std::move(bytes)));
  }

  absl::StatusOr<std::unique_ptr<ModelSink>> BeginImport(
      const ImportRequest& request) override {
    {
      absl::MutexLock lock(&mutex_);
      import_request_ = request;
    }
    if (request.total_bytes > (int64_t{1} << 30)) {
      return absl::ResourceExhaustedError("too large for this model");
    }
    return std::make_unique<FakeSink>(*this);
  }

  FakeCheckpoints& checkpoints() override { return checkpoints_; }

 private:
  class FakeSubscription : public Subscription {
   public:
    FakeSubscription(FakeBackend& backend, int id)
        : backend_(backend), id_(id) {}
    ~FakeSubscription() override {
      absl::MutexLock lock(&backend_.mutex_);
      backend_.listeners_.erase(id_);
    }

   private:
    FakeBackend& backend_;
    const int id_;
  };

  class OpenFile {
   public:
    explicit OpenFile(FakeBackend& backend) : backend_(backend) { Count(1); }
    ~OpenFile() { Count(-1); }

   private:
    void Count(int change) {
      absl::MutexLock lock(&backend_.mutex_);
      backend_.open_files_ += change;
    }
    FakeBackend& backend_;
  };

  class FakeSource : public ModelSource {
   public:
    FakeSource(FakeBackend& backend, std::string bytes)
        : open_(backend), bytes_(std::move(bytes)) {}
    int64_t total_bytes() const override {
      return static_cast<int64_t>(bytes_.size());
    }
    int64_t step() const override { return 1000; }
    std::string description() const override { return "{\"step\": \"1000\"}"; }
    absl::StatusOr<std::string> Read(int64_t offset,
                                     int64_t max_bytes) override {
      return bytes_.substr(static_cast<size_t>(offset),
                           static_cast<size_t>(max_bytes));
    }

   private:
    OpenFile open_;
    const std::string bytes_;
  };

  class FakeSink : public ModelSink {
   public:
    explicit FakeSink(FakeBackend& backend)
        : backend_(backend), open_(backend) {}
    absl::Status Append(absl::string_view data) override {
      bytes_.append(data.data(), data.size());
      return absl::OkStatus();
    }
    void Commit(Done<ImportResult> done) override {
      if (bytes_[0] == '!') {
        return done(absl::InvalidArgumentError(
            "conv1.weight: has shape [3], the model's is [4]"));
      }
      {
        absl::MutexLock lock(&backend_.mutex_);
        backend_.imported_ = bytes_;
      }
      done(ImportResult{static_cast<int64_t>(bytes_.size() / 4),
                        1000,
                        {"skipped: \"steps\" (I64)"}});
    }

   private:
    FakeBackend& backend_;
    OpenFile open_;
    std::string bytes_;
  };

  absl::StatusOr<ApplyPlanResult> Apply(const ApplyPlanOptions& options) {
    absl::StatusOr<core::RunPlan> plan =
        config::ParsePlan(options.yaml, "plan");
    if (!plan.ok()) return plan.status();
    absl::MutexLock lock(&mutex_);
    last_caller_ = options.caller;
    if (!failure_.ok()) return failure_;
    if (options.expected_version.has_value() &&
        *options.expected_version != plan_.version &&
        options.yaml != plan_.yaml) {
      return absl::AbortedError(
          absl::StrCat("plan version ", plan_.version, " is held, not ",
                       *options.expected_version,
                       "; read it again with `dflctl plan show`"));
    }
    ApplyPlanResult result;
    result.version = plan->version;
    result.run_id = plan->run_id;
    result.warnings = {"a warning of the daemon"};
    if (options.dry_run) {
      ModelFacts facts;
      facts.kind = plan->model.kind;
      facts.fingerprint = "ab12";
      facts.parameter_count = 268362;
      facts.dtypes = {"float32"};
      facts.memory_bytes = 5000000;
      facts.memory_parts = {{"data", 2000000},
                            {"for 3 neighbours: vectors", 3000000}};
      facts.memory_limit_bytes = 8000000;
      facts.message_bytes = 107345;
      facts.spectral_gap = 0.5;
      facts.first_step_note = "sigma 5";
      facts.train_rows = 15000;
      facts.test_rows = 10000;
      result.facts = facts;
      return result;
    }
    if (!options.record.empty()) records_.push_back(options.record);
    result.unchanged = options.yaml == plan_.yaml;
    plan_ = {options.yaml, plan->version, plan->version, plan->run_id, {}};
    past_plans_[plan->version] = plan_;
    if (members_adopt_) {
      for (MemberInfo& member : members_.members) {
        if (no_boundary_ && (member.self || !others_adopt_)) continue;
        member.plan_version = plan->version;
        member.plan_hash =
            std::stoull(Sha256Hex(options.yaml).substr(0, 16), nullptr, 16);
      }
    }
    if (no_boundary_) {
      plan_.version_in_force = status_.node.plan_version;
      status_.node.pending_plan_version = plan->version;
      return result;
    }
    status_.node.plan_version = plan->version;
    status_.node.pending_plan_version = 0;
    return result;
  }

  mutable absl::Mutex mutex_;
  NodeData data_ ABSL_GUARDED_BY(mutex_) = SampleData();
  absl::Status data_failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ ABSL_GUARDED_BY(mutex_);
  DaemonStatus status_ ABSL_GUARDED_BY(mutex_);
  PlanDocument plan_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, PlanDocument> past_plans_ ABSL_GUARDED_BY(mutex_);
  std::string cluster_ ABSL_GUARDED_BY(mutex_);
  std::vector<RecordInfo> listed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> records_ ABSL_GUARDED_BY(mutex_);
  Caller last_caller_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool quiet_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done<ports::Phase>> kept_ ABSL_GUARDED_BY(mutex_);
  std::vector<Begin> begins_ ABSL_GUARDED_BY(mutex_);
  bool no_boundary_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> orders_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerAddress> peers_ ABSL_GUARDED_BY(mutex_);
  KeptEvents kept_events_ ABSL_GUARDED_BY(mutex_);
  MemberTable members_ ABSL_GUARDED_BY(mutex_) = SampleMembers();
  // The members of the sample have each plan in force at once.
  bool members_adopt_ ABSL_GUARDED_BY(mutex_) = true;
  bool others_adopt_ ABSL_GUARDED_BY(mutex_) = false;
  int member_looks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, absl::StatusOr<std::string>> reports_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> questions_ ABSL_GUARDED_BY(mutex_);
  bool keep_answers_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> kept_answers_ ABSL_GUARDED_BY(mutex_);
  std::string model_file_ ABSL_GUARDED_BY(mutex_) = "model";
  std::string imported_ ABSL_GUARDED_BY(mutex_);
  ImportRequest import_request_ ABSL_GUARDED_BY(mutex_);
  int open_files_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::function<void(const TimedEvent&)>> listeners_
      ABSL_GUARDED_BY(mutex_);
  int next_listener_ ABSL_GUARDED_BY(mutex_) = 0;
  FakeCheckpoints checkpoints_;  // has a lock of its own
};

}  // namespace dfl::control

#endif  // DFL_TESTS_UNIT_CONTROL_FAKE_BACKEND_H_
