// What stands around app::ControlBackend in dfld, for its tests: a loop, a node
// whose transport reaches nobody, a learner whose gradient is 0, and a state
// directory in memory that outlives all of them.
#ifndef DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_
#define DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "daemon/app/control_backend.h"
#include "daemon/app/new_data/new_data.h"
#include "daemon/app/new_data/renewable_learners.h"
#include "daemon/app/orders.h"
#include "daemon/app/security.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/sim_files.h"
#include "daemon/store/checkpoint_files.h"
#include "daemon/store/node_state.h"
#include "gtest/gtest.h"

namespace dfl::app {

class DeafTransport final : public ports::Transport {
 public:
  void SetHandler(Handler* /*handler*/) override {}
  void Dial(const std::string& /*address*/) override {}
  void Close(ports::LinkId /*link*/, const absl::Status& /*why*/) override {}
  absl::Status Send(ports::LinkId /*link*/, ports::Frame /*frame*/) override {
    return absl::NotFoundError("no link");
  }
  int64_t max_queued_bytes() const override { return int64_t{1} << 20; }
  int64_t UnsentBytes(ports::LinkId /*link*/) const override { return 0; }
};

// Calls `on_gradient` on the training thread before each gradient.
class GatedLearner final : public simports::FakeLearner {
 public:
  // `tensors`: the parameters' lengths, as t0, t1, ...; {}: they are one.
  GatedLearner(int64_t parameters, const std::vector<int64_t>& tensors,
               const ports::DataInfo& data, std::function<void()> on_gradient)
      : FakeLearner(parameters, 0),
        model_(FakeLearner::model()),
        data_(data),
        on_gradient_(std::move(on_gradient)) {
    if (!tensors.empty()) model_.parameters.clear();
    int64_t offset = 0;
    for (const int64_t size : tensors) {
      model_.parameters.push_back(
          {absl::StrCat("t", model_.parameters.size()), {size}, offset, size});
      offset += size;
    }
  }
  const ports::ModelInfo& model() const override { return model_; }
  const ports::DataInfo& data() const override { return data_; }
  absl::StatusOr<ports::GradientResult> Gradient(
      const ports::GradientRequest& request) override {
    if (on_gradient_) on_gradient_();
    return FakeLearner::Gradient(request);
  }

 private:
  ports::ModelInfo model_;
  const ports::DataInfo data_;
  const std::function<void()> on_gradient_;
};

class FakeLearners final : public LearnerFactory {
 public:
  absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* spec,
      const core::DataSection& /*section*/) override {
    core::DataOffer out = offer;
    if (spec == nullptr) out.loss = out.model = "";
    return out;
  }
  control::DataReport Report() override {
    control::DataReport report;
    report.format = "csv";
    report.train_rows = reported_rows;
    return report;
  }
  std::vector<std::string> Warnings(
      const core::InputScaling& scaling) override {
    return {absl::StrCat("divided by ", scaling.divide)};
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& /*spec*/, const core::DataContract& contract,
      int64_t /*batch_size*/) override {
    if (on_build) on_build();
    if (!failure.ok() && !mended_) return failure;
    ++built;
    built_for = contract;
    return std::make_unique<GatedLearner>(parameters, tensors, data,
                                          on_gradient);
  }
  absl::Status ExportTorchScript(
      ports::Learner& /*learner*/, absl::Span<const float> /*parameters*/,
      absl::Span<const float> /*buffers*/,
      const std::function<absl::Status(absl::string_view)>& /*sink*/) override {
    return absl::InvalidArgumentError("there is none");
  }
  std::string EngineOf(const ports::Learner& /*learner*/) const override {
    return "fake";
  }
  ThreadChoice Threads(const std::string& engine) const override {
    return {3, absl::StrCat(engine, " takes three")};
  }
  std::vector<std::string> Libraries() const override { return {"fake 1"}; }

  // `failure` has gone; while the daemon runs.
  void Mend() { mended_ = true; }

  // A regression on two features.
  static core::DataOffer SampleOffer() {
    core::DataOffer offer;
    offer.task = core::Task::kRegression;
    offer.features = {"age", "bp"};
    offer.shape = {2};
    offer.loss = "mse";
    offer.model = std::string(64, 'a');
    return offer;
  }

  core::DataOffer offer = SampleOffer();
  int64_t parameters = 10;
  std::vector<int64_t> tensors;
  int64_t reported_rows = 150;
  ports::DataInfo data{.train_rows = 1, .test_rows = 1};
  int built = 0;
  core::DataContract built_for;
  absl::Status failure;
  std::function<void()> on_gradient;
  std::function<void()> on_build;

 private:
  std::atomic<bool> mended_{false};
};

// A disk that writes nothing while it is held.
class SlowDisk final : public ports::Files {
 public:
  explicit SlowDisk(ports::Files& disk) : disk_(disk) {}

  void Hold() {
    const absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    const absl::MutexLock lock(&mutex_);
    held_ = false;
  }
  absl::StatusOr<std::unique_ptr<ports::FileReader>> Open(
      const std::string& name) override {
    return disk_.Open(name);
  }
  absl::StatusOr<std::unique_ptr<ports::FileWriter>> Replace(
      const std::string& name) override {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(+[](bool* held) { return !*held; }, &held_));
    return disk_.Replace(name);
  }
  absl::Status Remove(const std::string& name) override {
    return disk_.Remove(name);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return disk_.Rename(from, to);
  }

 private:
  ports::Files& disk_;
  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

// A node that looks for new data.
struct StageData {
  NewDataOptions options;
  RenewableLearners& learners;  // those of the stage
};

// One start of a daemon on `disk`, between its constructor and its destructor.
class BackendStage {
 public:
  // `secured`: settings of a node with `security: tls`; null: it is insecure,
  // and takes records where `insecure_records` says so.
  // Its records have a disk of their own, for the loop writes them and another
  // thread writes all else.
  // `gossips`: membership is on, and plans follow the members that SayMember
  // brings.
  // `checkpoints_disk`: the node keeps checkpoints there, for it has a thread
  // of its own that writes them; null: it keeps none.
  // `data`: null: nobody looks for new data.
  BackendStage(ports::Files& disk, LearnerFactory& learners,
               BackendOptions options = {},
               const config::NodeSettings* secured = nullptr,
               simports::SimFiles* records_disk = nullptr,
               bool insecure_records = false, bool gossips = false,
               simports::SimFiles* checkpoints_disk = nullptr,
               const StageData* data = nullptr)
      : log_({config::LogLevel::kError, config::LogFormat::kText}, "anna"),
        loop_("test-node"),
        events_(log_),
        worker_(loop_, "test-encode"),
        checkpoint_worker_(loop_, "test-keep") {
    runtime::RunKeeper keeper(disk, codec_, "anna");
    EXPECT_TRUE(keeper.Begin().ok());
    runtime::NodeOptions node;
    node.self = options.self = NodeId("anna");
    runtime::RecordOptions records;
    if (secured != nullptr) {
      auto security = Security::Open(*secured, loop_, events_);
      EXPECT_TRUE(security.ok()) << security.status();
      security_ = *std::move(security);
      options.security = security_.get();
    }
    if (secured != nullptr || insecure_records) {
      OrdersOptions orders;
      orders.self = node.self;
      orders.pauses = {absl::Milliseconds(20), absl::Milliseconds(20)};
      orders_ = std::make_unique<Orders>(std::move(orders), security_.get(),
                                         loop_, events_, [] {});
      records = {&orders_->judge(), records_disk, orders_.get()};
      options.orders = orders_.get();
    }
    if (checkpoints_disk != nullptr) {
      checkpoints_ =
          std::make_unique<store::CheckpointFiles>(*checkpoints_disk);
      node.checkpoints.store = options.checkpoints = checkpoints_.get();
      node.checkpoints.worker = options.checkpoint_worker = &checkpoint_worker_;
    }
    runtime::MembershipOptions membership;
    membership.enabled = gossips;
    membership.self = node.self;
    if (gossips) membership.facts.rows = 150;
    loop_.RunAndWait([&] {
      node_ = std::make_unique<runtime::LinkedNode>(
          node, loop_, transport_, worker_, events_, records, membership);
      if (orders_ != nullptr) {
        EXPECT_TRUE(orders_->Load(node_->records(), node_->membership()).ok());
      }
      if (gossips) {
        follower_ = std::make_unique<runtime::PlanFollower>(
            node.self, loop_, worker_, node_->membership(), node_->node());
      }
    });
    options.follower = follower_.get();
    options.membership = &node_->membership();
    if (data != nullptr) {
      new_data_ = std::make_unique<NewData>(
          data->options, data->learners, loop_, &node_->membership(), events_);
      options.new_data = new_data_.get();
    }
    backend_ = std::make_unique<ControlBackend>(
        std::move(options), loop_, node_->node(), learners, std::move(keeper),
        events_, log_);
  }
  ~BackendStage() {
    backend_.reset();
    loop_.RunAndWait([&] {
      follower_.reset();
      node_.reset();
    });
    worker_.Stop();
    checkpoint_worker_.Stop();
    loop_.Stop();
  }

  ControlBackend& backend() { return *backend_; }
  // It goes before the node does.
  void EndBackend() { backend_.reset(); }
  Security& security() { return *security_; }
  // Another node says so of itself, for the `statement`-th time.
  void SayMember(const std::string& name, int64_t rows,
                 uint64_t statement = 1) {
    ports::MemberUpdate update;
    update.node = NodeId(name);
    update.incarnation = {1, statement};
    update.facts.emplace();
    update.facts->rows = rows;
    update.facts->condition = ports::Condition::kWell;
    loop_.RunAndWait([&] {
      node_->membership().OnFrame(update.node, ports::MembersFrame{{update}});
    });
  }
  // What it tells all members while its graph follows them as `view` says.
  ports::MemberFacts FactsWhile(const absl::Status& view) {
    ports::MemberFacts facts;
    loop_.RunAndWait([&] {
      orders_->Tick(node_->node().Status(), view);
      facts = node_->membership().facts();
    });
    return facts;
  }
  // What it tells all members.
  ports::MemberFacts Facts() {
    ports::MemberFacts facts;
    loop_.RunAndWait([&] {
      backend_->Publish();
      facts = node_->membership().facts();
    });
    return facts;
  }

  absl::StatusOr<control::ApplyPlanResult> ApplySigned(
      const std::string& record) {
    control::ApplyPlanOptions options;
    options.record = record;
    return Wait<control::ApplyPlanResult>(
        [&](auto done) { backend_->ApplyPlan(options, std::move(done)); });
  }
  absl::StatusOr<control::PutRecordResult> Put(const std::string& record) {
    return Wait<control::PutRecordResult>([&](auto done) {
      backend_->PutRecord(record, control::Caller(), std::move(done));
    });
  }

  absl::StatusOr<control::ApplyPlanResult> Apply(
      const std::string& yaml, std::optional<uint64_t> expected = std::nullopt,
      bool dry_run = false) {
    control::ApplyPlanOptions options;
    options.yaml = yaml;
    options.expected_version = expected;
    options.dry_run = dry_run;
    return Wait<control::ApplyPlanResult>(
        [&](auto done) { backend_->ApplyPlan(options, std::move(done)); });
  }
  absl::StatusOr<control::ApplyPlanResult> ApplyAs(
      const control::ApplyPlanOptions& options) {
    return Wait<control::ApplyPlanResult>(
        [&](auto done) { backend_->ApplyPlan(options, std::move(done)); });
  }
  absl::StatusOr<control::NodeData> Data(const std::string& yaml,
                                         control::Begin begin = nullptr) {
    return Wait<control::NodeData>(
        [&](auto done) { backend_->GetData(yaml, begin, std::move(done)); });
  }
  absl::StatusOr<ports::Phase> Train(control::TrainAction action,
                                     control::Begin begin = nullptr) {
    return Wait<ports::Phase>(
        [&](auto done) { backend_->Train(action, begin, std::move(done)); });
  }
  absl::StatusOr<std::unique_ptr<control::ModelSource>> Export(
      control::ModelFileFormat format) {
    return Wait<std::unique_ptr<control::ModelSource>>(
        [&](auto done) { backend_->BeginExport(format, std::move(done)); });
  }
  absl::StatusOr<control::ImportResult> Import(
      const control::ImportRequest& request, const std::string& bytes) {
    auto sink = backend_->BeginImport(request);
    if (!sink.ok()) return sink.status();
    const absl::Status taken = (*sink)->Append(bytes);
    if (!taken.ok()) return taken;
    return Wait<control::ImportResult>(
        [&](auto done) { (*sink)->Commit(std::move(done)); });
  }
  absl::StatusOr<control::CheckpointList> Checkpoints() {
    return Wait<control::CheckpointList>(
        [&](auto done) { backend_->checkpoints().List(std::move(done)); });
  }
  absl::StatusOr<control::CheckpointInfo> SaveCheckpoint(
      control::Begin begin = nullptr) {
    return Wait<control::CheckpointInfo>([&](auto done) {
      backend_->checkpoints().Save(begin, std::move(done));
    });
  }
  // The bytes of the newest one.
  absl::StatusOr<std::string> ExportCheckpoint() {
    auto source = Wait<std::unique_ptr<control::CheckpointSource>>(
        [&](auto done) { backend_->checkpoints().Open(std::move(done)); });
    if (!source.ok()) return source.status();
    return (*source)->Read(0, (*source)->total_bytes());
  }
  absl::StatusOr<control::RestoreResult> RestoreCheckpoint(
      const std::string& bytes, bool other_version = false) {
    auto sink = Wait<std::unique_ptr<control::CheckpointSink>>([&](auto done) {
      backend_->checkpoints().Restore(
          {static_cast<int64_t>(bytes.size()), other_version}, std::move(done));
    });
    if (!sink.ok()) return sink.status();
    const absl::Status taken = (*sink)->Append(bytes);
    if (!taken.ok()) return taken;
    return Wait<control::RestoreResult>(
        [&](auto done) { (*sink)->Commit(std::move(done)); });
  }
  // The node's status as it is now.
  runtime::NodeStatus Status() {
    loop_.RunAndWait([&] { backend_->Publish(); });
    return backend_->Status().node;
  }

 private:
  template <typename T, typename Call>
  absl::StatusOr<T> Wait(Call call) {
    absl::StatusOr<T> result = absl::UnknownError("not called");
    absl::Notification called;
    call([&](absl::StatusOr<T> answer) {
      result = std::move(answer);
      called.Notify();
    });
    called.WaitForNotification();
    return result;
  }

  const store::NodeStateCodec codec_;
  Logger log_;
  EventLoop loop_;
  EventHub events_;
  Worker worker_;
  std::unique_ptr<store::CheckpointFiles> checkpoints_;
  Worker checkpoint_worker_;
  DeafTransport transport_;
  std::unique_ptr<Security> security_;
  std::unique_ptr<Orders> orders_;
  std::unique_ptr<runtime::LinkedNode> node_;
  std::unique_ptr<runtime::PlanFollower> follower_;
  std::unique_ptr<NewData> new_data_;
  std::unique_ptr<ControlBackend> backend_;
};

inline constexpr char kPlanYaml[] =
    "members: [anna, bert, carl]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: pame, knobs: {p: 0.5}}\n"
    "topology: {kind: complete}\n";

}  // namespace dfl::app

#endif  // DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_
