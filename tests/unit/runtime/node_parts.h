// The parts of a node, wired but without the node: for tests of one part. The
// algorithm keeps the events it gets; the neighbours "b" and "c" are peers that
// say what the test tells them to.
#ifndef DFL_TESTS_UNIT_RUNTIME_NODE_PARTS_H_
#define DFL_TESTS_UNIT_RUNTIME_NODE_PARTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/first_model.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/plan_adoption.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/training.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_trainer.h"
#include "daemon/simports/sim_transport.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"
#include "tests/unit/runtime/unit_learner.h"

namespace dfl::runtime {

// An algorithm that does nothing but keep what happens.
class EventKeeper : public core::Algorithm {
 public:
  explicit EventKeeper(std::vector<core::Event>& events) : events_(events) {}
  void Handle(core::Event event, core::Actions& /*actions*/) override {
    events_.push_back(std::move(event));
  }
  int64_t step() const override { return step_; }
  bool parameters_settled() const override { return settled; }
  std::map<std::string, double> Gauges() const override { return {}; }
  double MassTaken(const NodeId& /*from*/) const override { return 1.5; }

  bool settled = true;

 protected:
  void MoveTo(int64_t k) override { step_ = k; }
  void VisitState(core::StateFields& /*fields*/) override {}

 private:
  std::vector<core::Event>& events_;
  int64_t step_ = 0;
};

class NodeParts
    : public LinkObserver,
      public FrameReceivers<
          ports::StateFrame, ports::RecordSummary, ports::RecordWant,
          ports::RecordPart, ports::ContractWant, ports::ContractPart,
          ports::ProbeFrame, ports::ProbeAckFrame, ports::MembersFrame,
          ports::MembersDigestFrame, ports::QueryFrame, ports::QueryPartFrame>,
      public Actor {
 public:
  // Node "a" of a plan with "b" and "c", which are linked to it and have said
  // nothing yet. There is a trainer and no model.
  explicit NodeParts(const std::string& algorithm = "decefl")
      : loop(scheduler),
        log(scheduler),
        transport(network, loop, Options()),
        links(LinksOptions{NodeId("a"), 1}, loop, transport, log, router_),
        own(
            NodeId("a"), loop, log, *this, [this] { ++phase_changes; },
            [this] { ++boundary_visits; }),
        peers(own.run, [this](const NodeId& p) { return links.IsUp(p); }),
        presence(own, peers, links,
                 [this](ports::StateFrame& state, const NodeId& to) {
                   exchange.mass().Tell(state, to);
                 }),
        exchange({}, own, peers, presence, links, loop, loop, log, first),
        training(own, loop, log, absl::Seconds(1)),
        evaluations(own, training, loop, log),
        joining({}, loop, links, exchange.transfers(), exchange.asks().book(),
                peers, own.run, first),
        lives(own, exchange, presence, training, joining),
        first(own, presence, training, joining, lives, exchange.rejections(),
              log),
        plans(own, peers, exchange, presence, training, joining, lives,
              evaluations, log) {
    router_.Connect(*this, exchange.asks(), exchange.pushes(),
                    exchange.transfers());
    DFL_CHECK(plans.Set(Plan(algorithm), NewTrainer()).ok());
    b.Dial("a:1");
    c.Dial("a:1");
    Pass();
  }

  static core::DerivedPlan Plan(const std::string& algorithm,
                                uint64_t version = 1) {
    core::RunPlan plan;
    plan.version = version;
    plan.run_id = "run";
    for (const char* name : {"a", "b", "c"}) {
      plan.members.push_back(core::MemberSpec{.node = NodeId(name)});
    }
    plan.model.kind = "linear";
    plan.model.classes = 0;
    plan.model.hidden.clear();
    plan.algorithm.name = algorithm;
    plan.codec.format = core::MessageFormat{};
    return Derive(std::move(plan));
  }
  static core::DerivedPlan Derive(core::RunPlan plan) {
    auto derived = core::CheckAndDerive(std::move(plan), NodeId("a"));
    DFL_CHECK(derived.ok());
    return *std::move(derived);
  }
  std::unique_ptr<ports::Trainer> NewTrainer() {
    auto made = std::make_unique<simports::SimTrainer>(
        loop, learner, absl::Milliseconds(10), absl::Milliseconds(10));
    trainer = made.get();
    return made;
  }

  // The model has values and an EventKeeper runs on it, in a new epoch.
  EventKeeper& Keep() {
    own.model.SetInitialised(true);
    own.algorithm.BeginEpoch();
    auto made = std::make_unique<EventKeeper>(events);
    keeper = made.get();
    own.algorithm.Install(std::move(made), nullptr);
    return *keeper;
  }
  // `peer` says that it is in our run with our model.
  ports::StateFrame StateOf(ports::Phase phase, int64_t step,
                            uint64_t tracker_epoch) {
    ports::StateFrame state;
    state.run_id = "run";
    state.algorithm = own.run.plan().algorithm.name;
    state.plan_version = 1;
    state.contract = core::DigestOf(learner.model().contract);
    state.step = step;
    state.phase = phase;
    state.tracker_epoch = tracker_epoch;
    return state;
  }
  void SayState(RawPeer& peer, ports::Phase phase = ports::Phase::kTraining,
                int64_t step = 0, uint64_t tracker_epoch = 0) {
    DFL_CHECK(peer.Send(StateOf(phase, step, tracker_epoch)).ok());
    Pass();
  }
  // Long enough for messages.
  void Pass(absl::Duration time = absl::Milliseconds(100)) {
    scheduler.RunFor(time);
  }

  template <typename E>
  std::vector<const E*> Events() const {
    std::vector<const E*> found;
    for (const core::Event& event : events) {
      if (const auto* e = std::get_if<E>(&event)) found.push_back(e);
    }
    return found;
  }

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override {
    peers.OnLink(peer);
    exchange.transfers().OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status&) override {
    peers.OnLink(peer);
    exchange.transfers().OnPeerDown(peer);
  }
  void OnPeerWritable(const NodeId& peer) override {
    exchange.transfers().OnPeerWritable(peer);
  }
  void OnAddressFailed(const std::string&) override {}

  // FrameReceiver
  void OnFrame(const NodeId&, ports::RecordSummary) override {}
  void OnFrame(const NodeId&, ports::RecordWant) override {}
  void OnFrame(const NodeId&, ports::RecordPart) override {}
  void OnFrame(const NodeId&, ports::ContractWant) override {}
  void OnFrame(const NodeId&, ports::ContractPart) override {}
  void OnFrame(const NodeId&, ports::ProbeFrame) override {}
  void OnFrame(const NodeId&, ports::ProbeAckFrame) override {}
  void OnFrame(const NodeId&, ports::MembersFrame) override {}
  void OnFrame(const NodeId&, ports::MembersDigestFrame) override {}
  void OnFrame(const NodeId&, ports::QueryFrame) override {}
  void OnFrame(const NodeId&, ports::QueryPartFrame) override {}
  void OnFrame(const NodeId& peer, ports::StateFrame frame) override {
    peers.OnState(peer, std::move(frame));
  }

  // Actor: the algorithm of the plan gets no further than its first action.
  void Do(const core::ComputeGradient&) override {}
  void Do(const core::Predict&) override {}
  void Do(const core::StepDone&) override {}
  void Do(const core::Ask&) override {}
  void Do(const core::CancelAsk&) override {}
  void Do(const core::Answer&) override {}
  void Do(const core::Missed&) override {}
  void Do(const core::Push&) override {}
  void Do(const core::Skip&) override {}
  void Do(const core::Give&) override {}
  void OnHandled() override {}

 private:
  static simports::SimTransportOptions Options() {
    simports::SimTransportOptions options;
    options.node = NodeId("a");
    options.incarnation = 1;
    options.address = "a:1";
    return options;
  }

  FrameRouter router_;

 public:
  const NodeId kB{"b"};
  const NodeId kC{"c"};
  simports::SimScheduler scheduler;
  simports::SimNetwork network{scheduler, 1, {}};
  simports::SimLoop loop;
  EventLog log;
  simports::SimTransport transport;
  UnitLearner learner;  // before what trains with it
  std::vector<core::Event> events;
  EventKeeper* keeper = nullptr;
  simports::SimTrainer* trainer = nullptr;
  int phase_changes = 0;
  int boundary_visits = 0;
  Links links;
  OwnState own;
  PeerTable peers;
  Presence presence;
  Exchange exchange;
  Training training;
  Evaluations evaluations;
  Joining joining;
  AlgorithmLives lives;
  FirstModel first;
  PlanAdoption plans;
  RawPeer b{network, "b"};
  RawPeer c{network, "c"};
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_NODE_PARTS_H_
