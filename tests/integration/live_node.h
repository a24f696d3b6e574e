// A node of a scenario in the test's own process, as dfld builds it: a loop, an
// encoder and a training thread of its own, and gRPC over loopback. In place of
// files it learns the scenario's generated problem. What it keeps to itself
// (the ledger, the tracker epoch) can be looked at.
#ifndef DFL_TESTS_INTEGRATION_LIVE_NODE_H_
#define DFL_TESTS_INTEGRATION_LIVE_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/app/async_trainer.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/worker.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "daemon/sim/tasks/task.h"
#include "gtest/gtest.h"

namespace dfl::testing_support {

class LiveNode {
 public:
  // The member `place` at its `start`-th start, 1 being the first. It listens
  // on a port that the system chooses and dials `peers`. `task` must outlive
  // it.
  LiveNode(const sim::Scenario& scenario, sim::Task& task, int64_t place,
           int64_t start, const std::vector<std::string>& peers)
      : task_(task),
        place_(place),
        self_(scenario.plan.members[static_cast<size_t>(place)].node),
        incarnation_(sim::IncarnationOf(scenario.plan, self_.name(), start)),
        loop_(self_.name()),
        worker_(std::make_unique<app::Worker>(loop_, self_.name())) {
    exchange::GrpcTransportOptions transport;
    transport.self.node = self_;
    transport.self.incarnation = incarnation_;
    transport_ = std::make_unique<exchange::GrpcTransport>(loop_, transport);
    runtime::NodeOptions node;
    node.self = self_;
    node.incarnation = incarnation_;
    Run([&] {
      node_ = std::make_unique<runtime::LinkedNode>(node, loop_, *transport_,
                                                    *worker_, events_);
    });
    const auto bound = transport_->Listen({"127.0.0.1:0"});
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return;
    address_ = bound->front();
    Run([&] {
      transport_->SetAdvertised(address_);
      for (const std::string& peer : peers) {
        EXPECT_TRUE(node_->links().AddAddress(peer).ok());
      }
    });
  }
  // Power off: what is under way comes to no end, and the node says nothing.
  ~LiveNode() {
    Run([&] {
      transport_->Shutdown();
      node_.reset();
    });
    worker_->Stop();
    loop_.Stop();
    transport_.reset();
  }
  LiveNode(const LiveNode&) = delete;
  LiveNode& operator=(const LiveNode&) = delete;

  // Gives it a plan, the first with the learner that goes with it.
  absl::Status SetPlan(const core::RunPlan& plan) {
    absl::Status set = absl::UnavailableError("the loop has ended");
    Run([&] { set = SetPlanOnLoop(plan); });
    return set;
  }
  absl::Status SetPlanOnLoop(const core::RunPlan& plan) {
    absl::StatusOr<core::DerivedPlan> derived =
        core::CheckAndDerive(plan, self_);
    if (!derived.ok()) return derived.status();
    if (node_->node().plan() != nullptr) {
      return node_->node().SetPlan(*std::move(derived), nullptr);
    }
    auto learner = task_.MakeLearner(place_, incarnation_);
    if (!learner.ok()) return learner.status();
    return node_->node().SetPlan(
        *std::move(derived),
        std::make_unique<app::AsyncTrainer>(loop_, *std::move(learner)));
  }
  absl::Status Start() {
    absl::Status started = absl::UnavailableError("the loop has ended");
    Run([&] { started = node_->node().Start(); });
    return started;
  }

  // Runs `f` on its loop, to the end.
  void Run(const std::function<void()>& f) { EXPECT_TRUE(loop_.RunAndWait(f)); }
  // On its loop only.
  const runtime::Node& node() const { return node_->node(); }

  const NodeId& self() const { return self_; }
  const std::string& address() const { return address_; }

 private:
  class Deaf final : public ports::EventSink {
    void Report(const ports::NodeEvent& /*event*/) override {}
  };

  sim::Task& task_;
  const int64_t place_;
  const NodeId self_;
  const uint64_t incarnation_;
  Deaf events_;
  app::EventLoop loop_;
  std::unique_ptr<app::Worker> worker_;
  std::unique_ptr<exchange::GrpcTransport> transport_;
  std::unique_ptr<runtime::LinkedNode> node_;
  std::string address_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_INTEGRATION_LIVE_NODE_H_
