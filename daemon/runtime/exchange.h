// What travels between this node and its neighbours: answers, pushes and mass,
// each through the part that knows its kind. Here it is decided what may come
// in at all.
//
//   Transfers --each message by its kind--> AskExchange
//             <--what is sent--             PushExchange
//                                           MassExchange
//
// Loop only.
#ifndef DFL_RUNTIME_EXCHANGE_H_
#define DFL_RUNTIME_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/header.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/ask_exchange.h"
#include "daemon/runtime/far_models.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/mass_exchange.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/push_exchange.h"
#include "daemon/runtime/rejections.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

class Exchange : private Transfers::Listener {
 public:
  // All must outlive it.
  Exchange(TransfersOptions options, OwnState& own, PeerTable& peers,
           Presence& presence, Links& links, ports::Loop& loop,
           ports::Worker& worker, ports::EventSink& events,
           AskExchange::Listener& listener);

  // Is told of a peer of our run that sends as a neighbour and is none here: it
  // may know other members than we do.
  void SetOtherView(std::function<void(const NodeId&)> other_view) {
    other_view_ = std::move(other_view);
  }

  Transfers& transfers() { return transfers_; }
  const Transfers& transfers() const { return transfers_; }
  AskExchange& asks() { return asks_; }
  PushExchange& pushes() { return pushes_; }
  MassExchange& mass() { return mass_; }
  const MassExchange& mass() const { return mass_; }
  Rejections& rejections() { return rejections_; }
  FarModels& far_models() { return far_models_; }

  // The algorithm ends: what it had under way or waiting is dropped.
  void StopAlgorithm();
  // A new run: whatever is under way is of another model. `again`: see
  // MassExchange::BeginRun.
  void BeginRun(bool again = false);

 private:
  // Transfers::Listener
  Admission Admit(const NodeId& from, const ports::TransferBegin& begin,
                  const codec::EncodedHeader* header) override;
  std::optional<Refusal> Recheck(const NodeId& from, ports::TransferKind kind,
                                 uint64_t ask,
                                 const ModelLengths& admitted) override;
  void OnModel(const NodeId& from, ports::TransferKind kind, uint64_t ask,
               int64_t step, std::vector<double> scalars, absl::Duration age,
               std::unique_ptr<codec::DecodedMessage> message) override;
  double OnMass(const NodeId& from, uint64_t tracker_epoch, uint64_t sequence,
                int64_t round, std::vector<double> scalars,
                std::unique_ptr<codec::DecodedMessage> message) override;
  void OnTransferLost(const NodeId& from, ports::TransferKind kind,
                      uint64_t ask, const std::string& why) override;
  void OnBadMessage(const NodeId& from, ports::RefuseReason reason,
                    const std::string& text) override;

  // Why a transfer that carries a model or mass is not taken, whatever the
  // algorithm thinks of it.
  std::optional<Refusal> Misplaced(const NodeId& from,
                                   const ports::TransferBegin& begin,
                                   const codec::EncodedHeader* header) const;

  // The algorithm makes offers (AlgorithmInfo::offers).
  bool Offers() const;
  // Why a model is not in the form that the plan says; nullopt: it is.
  std::optional<Refusal> Unplanned(const NodeId& from,
                                   const ports::TransferBegin& begin,
                                   const codec::EncodedHeader& header) const;
  // What a message of `kind` must have now.
  ModelLengths Lengths(ports::TransferKind kind) const;

  OwnState& own_;
  PeerTable& peers_;
  Rejections rejections_;
  Transfers transfers_;
  AskExchange asks_;
  PushExchange pushes_;
  MassExchange mass_;
  FarModels far_models_;
  std::function<void(const NodeId&)> other_view_ = [](const NodeId&) {};
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_EXCHANGE_H_
