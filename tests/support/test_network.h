// A network of algorithms by themselves, in memory and in virtual time: it
// carries out what the state machines of its nodes ask for.
//
// All that is under way is in one queue, ordered by time and, at one time, by
// when it was put there. So a run depends on nothing but its parts. Messages
// are values. Parcels of mass are sent until their acknowledgement has come.
//
// A test says by overriding what its network is like: how long things take,
// what is lost, how values travel, and on what batch a gradient is. As it is,
// all of it happens at once, nothing is lost and a gradient is of all rows.
#ifndef DFL_TESTS_SUPPORT_TEST_NETWORK_H_
#define DFL_TESTS_SUPPORT_TEST_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/simports/problems.h"

namespace dfl::core {

// What a seed stands for among n coordinates: `count` of them, sorted.
std::vector<int64_t> NamedCoordinates(uint64_t seed, int64_t n, int64_t count);

struct TestNode {
  // What the test makes it of. `plan.algorithm` is its algorithm; the problem
  // outlives the network, and null is for networks with gradients of their own.
  NodePlan plan;
  std::unique_ptr<Decisions> decisions;
  std::vector<float> parameters;
  std::vector<float> buffers = {};
  const simports::Problem* problem = nullptr;
  int64_t batches_per_pass = 1;
  const MassCode* mass_code = nullptr;

  // What the network keeps of it.
  struct Parcel {
    Give give;
    bool taken = false;
  };
  std::vector<float> gradient = {};
  std::unique_ptr<Algorithm> algorithm = nullptr;
  bool at_boundary = true;
  // A gradient is under way: of this model, on this batch.
  std::optional<std::vector<float>> computes_at = {};
  std::vector<int64_t> batch = {};
  std::map<uint64_t, uint64_t> timers = {};  // that are set, with a number each
  std::vector<AskArrived> asks = {};         // that wait for settled parameters
  std::map<size_t, Parcel> parcels = {};     // that are out, by taker
};

class TestNetwork {
 public:
  explicit TestNetwork(std::vector<NodeId> names);
  virtual ~TestNetwork() = default;
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  size_t size() const { return names_.size(); }
  const NodeId& name(size_t i) const { return names_[i]; }
  size_t IndexOf(const NodeId& node) const { return places_.at(node); }
  TestNode& node(size_t i) { return *nodes_[i]; }
  const TestNode& node(size_t i) const { return *nodes_[i]; }
  Algorithm& algorithm(size_t i) const { return *nodes_[i]->algorithm; }
  const std::vector<float>& parameters(size_t i) const {
    return nodes_[i]->parameters;
  }

  // Puts a node at place i, with an algorithm that was handed nothing yet.
  void Add(size_t i, TestNode node);
  // A new algorithm over the vectors and decisions of node i.
  std::unique_ptr<Algorithm> MakeAlgorithm(size_t i);
  // Tells node i that every other is up.
  void LinkUp(size_t i);

  // Hands node i an event: now, or in a while.
  void Handle(size_t i, Event event);
  void HandleAfter(double seconds, size_t i, Event event);
  // Node i, at a boundary, begins its next step as the next thing that happens.
  void Begin(size_t i);
  // The gradient that node i computes is ready: of its `computes_at`, on its
  // `batch`.
  void FinishGradient(size_t i);

  // False: nothing is under way.
  bool HappenNext();
  // What happens within this time.
  void Run(double seconds);
  // Until nothing is under way.
  void RunAll();

  int64_t repeated() const { return repeated_; }  // parcels
  int64_t asks_waited() const { return asks_waited_; }

 protected:
  double now() const { return now_; }
  void After(double seconds, std::function<void()> happens);

  // ---- what kinds of networks differ in ----

  // How long this takes on its way; nothing: it is lost.
  virtual std::optional<double> Latency(size_t /*from*/, size_t /*to*/,
                                        const Event& /*message*/) {
    return 0;
  }
  // After how long a parcel is sent again; 0: never.
  virtual double ResendAfter() const { return 0; }
  // How long a gradient or predictions take, which were just asked for;
  // nothing: until FinishGradient.
  virtual std::optional<double> ComputeTime(size_t /*i*/) { return 0; }
  // When a timer fires; nothing: never.
  virtual std::optional<double> TimerTime(size_t /*i*/, const WakeAfter& wake) {
    return absl::ToDoubleSeconds(wake.delay);
  }
  // The next mini-batch, empty for all rows.
  virtual std::vector<int64_t> NextBatch(size_t /*i*/) { return {}; }
  // Writes the gradient at `model` on `batch` into node i's.
  virtual GradientReady Gradient(size_t i, absl::Span<const float> model,
                                 const std::vector<int64_t>& batch);
  // The coordinates of an answer.
  virtual std::vector<int64_t> Coordinates(size_t from, const Answer& answer);
  // A parcel as its taker decodes it.
  virtual std::unique_ptr<RemoteVector> Decoded(const Give& give);
  // Sees every action before it is carried out.
  virtual void OnAction(size_t /*i*/, const Action& /*action*/) {}
  // Sees every event before it is handled.
  virtual void OnEvent(size_t /*i*/, const Event& /*event*/) {}
  // Node i has done its step.
  virtual void OnBoundary(size_t /*i*/) {}

 private:
  void Send(size_t from, size_t to, Event message);
  void Arrive(size_t to, Event message);
  void ServeAsks(size_t i);
  void Transmit(size_t from, size_t to);

  void Do(size_t i, ComputeGradient action);
  void Do(size_t i, const Ask& action);
  void Do(size_t i, const Answer& action);
  void Do(size_t i, const Push& action);
  void Do(size_t i, const Give& action);
  void Do(size_t i, const Skip& action);
  void Do(size_t i, const WakeAfter& action);
  void Do(size_t i, const CancelTimer& action);
  void Do(size_t i, const Predict& action);
  void Do(size_t i, StepDone action);
  void Do(size_t /*i*/, const CancelAsk& /*action*/) {}
  void Do(size_t /*i*/, const Missed& /*action*/) {}

  const std::vector<NodeId> names_;
  std::map<NodeId, size_t> places_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
  double now_ = 0;
  uint64_t last_number_ = 0;
  std::map<std::pair<double, uint64_t>, std::function<void()>> queue_;
  int64_t repeated_ = 0;
  int64_t asks_waited_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_SUPPORT_TEST_NETWORK_H_
