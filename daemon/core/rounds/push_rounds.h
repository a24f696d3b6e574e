// Synchronous rounds by pushes, which d-psgd, decefl, dfedavgm and others have
// in common. A round pushes, trains and mixes, in one of three orders:
//
//   kPushTrainMix  w(t) is sent while the node trains (d-psgd, decefl)
//   kTrainPushMix  the trained model is sent (dfedavgm, dfedsam)
//   kPushMixTrain  w(t) is sent first, and training starts from the mix
//                  (epidemic)
//
// Mixing waits for all models, or for the deadline. A subclass says whom it
// exchanges with, how it trains and how it mixes. push_barrier.h decides who is
// waited for and which values count.
#ifndef DFL_CORE_ROUNDS_PUSH_ROUNDS_H_
#define DFL_CORE_ROUNDS_PUSH_ROUNDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/rounds/push_algorithm.h"
#include "daemon/core/rounds/push_barrier.h"

namespace dfl::core {

class PushRounds : public PushAlgorithm {
 public:
  // dropped_late, step_size and the subclass's.
  std::map<std::string, double> Gauges() const final;

 protected:
  enum class Order { kPushTrainMix, kTrainPushMix, kPushMixTrain };
  // What follows a gradient.
  enum class Next { kTrained, kNextBatch, kSameBatch };

  explicit PushRounds(AlgorithmContext context);

  // Called when a round begins; the parameters hold w(t). Random choices of the
  // round are made here.
  virtual void BeginRound() {}
  virtual Order RoundOrder() const { return Order::kPushTrainMix; }
  // The nodes that this round pushes to, and the nodes whose pushes it waits
  // for (if they are up).
  virtual std::vector<NodeId> Receivers() const { return barrier().peers(); }
  virtual std::vector<NodeId> Senders() const { return barrier().peers(); }
  // How long mixing waits for these pushes.
  virtual absl::Duration Deadline() const { return plan().exchange_deadline; }

  // Called before a gradient at the parameters is requested.
  virtual void BeforeTraining() {}
  // A gradient is in NodeVectors::gradient. kNextBatch and kSameBatch: training
  // of this round goes on with another one.
  virtual Next AfterGradient() { return Next::kTrained; }
  // Mixes `arrivals`, in the order of neighbours; by default into parameters
  // and buffers, by their weights. In all orders but kPushMixTrain it leaves
  // w(t+1) in the parameters.
  virtual void Mix(std::vector<PushBarrier::Arrival> arrivals);
  // Called when the mix is done, before the round continues.
  virtual void AfterMix(Actions& /*actions*/) {}
  virtual double StepSize() const = 0;
  virtual void AddGauges(std::map<std::string, double>& /*gauges*/) const {}

  // Between StepBegins and the round's end.
  bool in_round() const { return in_round_; }

 private:
  void OnStarted() final { in_round_ = waiting_ = false; }
  void OnStepBegins(Actions& actions) final;
  void OnGradient(Actions& actions) final;
  void OnTimer(uint64_t timer, Actions& actions) final;
  void MixIfComplete(Actions& actions) final;

  void PushOut(Actions& actions);
  void Train(Actions& actions);
  void Wait(Actions& actions);
  void EndWait(Actions& actions);
  void Finish(Actions& actions);

  bool in_round_ = false;
  bool waiting_ = false;  // for neighbours, all else of the phase is done
  Order order_ = Order::kPushTrainMix;  // of the present round
};

// Self and all neighbours, sorted: the members, when the graph is complete.
std::vector<NodeId> CompleteMembers(const NodePlan& plan);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_PUSH_ROUNDS_H_
