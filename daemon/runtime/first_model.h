// How a node comes by the model that it trains: from the neighbour that is
// furthest, fresh, or from a file that was imported. Then it begins to train.
//
// Loop only.
#ifndef DFL_RUNTIME_FIRST_MODEL_H_
#define DFL_RUNTIME_FIRST_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/ask_exchange.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/rejections.h"
#include "daemon/runtime/training.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

class FirstModel : public Joining::Listener, public AskExchange::Listener {
 public:
  // All must outlive it.
  FirstModel(OwnState& own, Presence& presence, Training& training,
             Joining& joining, AlgorithmLives& lives, Rejections& rejections,
             ports::EventSink& events);

  // Whether the model could not be bound to the learner: then the node becomes
  // failed. Nothing else can be done with it.
  bool Unbound();
  // Looks for a neighbour to start from, in phase joining.
  void Look();
  // Trains the model that there is, with an algorithm for it.
  void Train(absl::string_view reason);

  // Replaces the model: see Node::ReplaceModel.
  void Replace(std::shared_ptr<const Snapshot> model,
               std::function<void(absl::Status)> done, ModelParts parts = {});

  // Joining::Listener
  bool Starting() const override {
    return own_.phases.Is(ports::Phase::kJoining);
  }
  bool MayReplaceModel() const override {
    return own_.phases.Running() && own_.boundary.here();
  }
  int64_t OwnStep() const override { return own_.algorithm.step(); }
  void OnNobodyToJoin() override;
  void OnWaitEnds() override { own_.boundary.Schedule(); }

  // AskExchange::Listener
  void OnStateMissed(const NodeId& from) override { joining_.Failed(from); }
  void OnState(const NodeId& from, uint64_t ask, int64_t step,
               absl::Span<const double> said,
               const codec::DecodedMessage& message) override;

 private:
  // How far a model that `said` its steps and rounds has come, which may have
  // been under several algorithms; nullopt: it said no such numbers.
  static std::optional<core::Pace> PaceOf(absl::Span<const double> said);

  OwnState& own_;
  Presence& presence_;
  Training& training_;
  Joining& joining_;
  AlgorithmLives& lives_;
  Rejections& rejections_;
  ports::EventSink& events_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_FIRST_MODEL_H_
