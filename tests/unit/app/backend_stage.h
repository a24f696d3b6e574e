// What stands around app::ControlBackend in dfld, for its tests: a loop, a node
// whose transport reaches nobody, a learner whose gradient is 0, and a state
// directory in memory that outlives all of them.
#ifndef DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_
#define DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "daemon/app/control_backend.h"
#include "daemon/app/orders.h"
#include "daemon/app/security.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/simports/analytic_learner.h"
#include "daemon/simports/sim_files.h"
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
};

class FakeLearners final : public LearnerFactory {
 public:
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& /*spec*/) override {
    if (!failure.ok()) return failure;
    ++built;
    return std::make_unique<simports::FakeLearner>(parameters, 0);
  }
  absl::Status ExportTorchScript(
      ports::Learner& /*learner*/, absl::Span<const float> /*parameters*/,
      absl::Span<const float> /*buffers*/,
      const std::function<absl::Status(absl::string_view)>& /*sink*/) override {
    return absl::InvalidArgumentError("there is none");
  }
  std::vector<std::string> Libraries() const override { return {"fake 1"}; }

  int64_t parameters = 10;
  int built = 0;
  absl::Status failure;
};

// One start of a daemon on `disk`, between its constructor and its destructor.
class BackendStage {
 public:
  // `secured`: settings of a node with `security: tls`; null: it is insecure.
  // Its records have a disk of their own, for the loop writes them and another
  // thread writes all else.
  BackendStage(simports::SimFiles& disk, FakeLearners& learners,
               BackendOptions options = {},
               const config::NodeSettings* secured = nullptr,
               simports::SimFiles* records_disk = nullptr)
      : log_({config::LogLevel::kError, config::LogFormat::kText}, "anna"),
        loop_("test-node"),
        events_(loop_, log_),
        worker_(loop_, "test-encode") {
    runtime::RunKeeper keeper(disk, codec_, "anna");
    EXPECT_TRUE(keeper.Begin().ok());
    runtime::NodeOptions node;
    node.self = options.self = NodeId("anna");
    runtime::RecordOptions records;
    if (secured != nullptr) {
      auto security = Security::Open(*secured, loop_, events_);
      EXPECT_TRUE(security.ok()) << security.status();
      security_ = *std::move(security);
      orders_ = std::make_unique<Orders>(node.self, *security_, loop_, events_,
                                         [] {});
      records = {&orders_->judge(), records_disk, orders_.get()};
      options.security = security_.get();
      options.orders = orders_.get();
    }
    loop_.RunAndWait([&] {
      node_ = std::make_unique<runtime::LinkedNode>(node, loop_, transport_,
                                                    worker_, events_, records);
      if (orders_ != nullptr) {
        EXPECT_TRUE(orders_->Load(node_->records()).ok());
      }
    });
    backend_ = std::make_unique<ControlBackend>(
        std::move(options), loop_, node_->node(), learners, std::move(keeper),
        events_, log_);
  }
  ~BackendStage() {
    backend_.reset();
    loop_.RunAndWait([&] { node_.reset(); });
    worker_.Stop();
    loop_.Stop();
  }

  ControlBackend& backend() { return *backend_; }
  Security& security() { return *security_; }

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
  absl::StatusOr<ports::Phase> Train(control::TrainAction action) {
    return Wait<ports::Phase>(
        [&](auto done) { backend_->Train(action, std::move(done)); });
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
  DeafTransport transport_;
  std::unique_ptr<Security> security_;
  std::unique_ptr<Orders> orders_;
  std::unique_ptr<runtime::LinkedNode> node_;
  std::unique_ptr<ControlBackend> backend_;
};

inline constexpr char kPlanYaml[] =
    "members: [anna, bert, carl]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: pame, knobs: {p: 0.5}}\n"
    "topology: {kind: complete}\n";

}  // namespace dfl::app

#endif  // DFL_TESTS_UNIT_APP_BACKEND_STAGE_H_
