// Models that are asked for: our asks and the answers to them, and our answers
// to the asks of peers.
//
// An ask is answered whenever the parameters hold w^k, whether the node trains
// or not; until then it waits. Answers to the algorithm's asks go to the
// algorithm. Asks for a state to start from are Joining's: their answers go to
// the listener.
//
// Loop only.
#ifndef DFL_RUNTIME_ASK_EXCHANGE_H_
#define DFL_RUNTIME_ASK_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/codec/decoder.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/ask_book.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/rejections.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

class AskExchange : public FrameReceivers<ports::AskFrame, ports::RefuseFrame,
                                          ports::CancelAskFrame> {
 public:
  // Told of what comes of asks for a state.
  class Listener {
   public:
    virtual ~Listener() = default;
    // `from` will not answer the one that was out to it.
    virtual void OnStateMissed(const NodeId& from) = 0;
    // `said`: the steps and rounds of the model, untrusted; anything else: it
    // said nothing.
    virtual void OnState(const NodeId& from, uint64_t ask, int64_t step,
                         absl::Span<const double> said,
                         const codec::DecodedMessage& message) = 0;
  };

  // All must outlive it.
  AskExchange(OwnState& own, PeerTable& peers, Links& links,
              Transfers& transfers, Rejections& rejections,
              ports::EventSink& events, Listener& listener);

  AskBook& book() { return book_; }

  // What the algorithm wants.
  void Do(const core::Ask& action);
  void Do(const core::CancelAsk& action);
  void Do(const core::Answer& action);
  void Do(const core::Missed& action);

  // Answers those that wait, if the parameters hold w^k.
  void Serve();
  // `from` will not answer `ask`.
  void Miss(const NodeId& from, uint64_t ask);
  // A model came from `from`, whose answer to `ask` was admitted.
  void OnAnswer(const NodeId& from, uint64_t ask, int64_t step,
                absl::Span<const double> scalars,
                std::unique_ptr<codec::DecodedMessage> message);
  // The link is gone. An answer that has begun to arrive may be resumed, within
  // the algorithm's deadline; the other asks are lost with the link.
  void OnPeerDown(const NodeId& peer);
  // `peer` says nothing any more: the algorithm waits for no answer of it that
  // has not begun to arrive.
  void OnSilent(const NodeId& peer);
  // The algorithm ends: its asks are withdrawn.
  void Stop();

  // FrameReceivers
  void OnFrame(const NodeId& from, ports::AskFrame ask) override;
  void OnFrame(const NodeId& from, ports::RefuseFrame refuse) override;
  void OnFrame(const NodeId& from, ports::CancelAskFrame dropped) override;

 private:
  // Why `ask` is not answered; nullopt: it is, now or later.
  std::optional<Refusal> Objection(const NodeId& from,
                                   const ports::AskFrame& ask) const;
  // Asks that are out to `peer` of whose answers nothing has come.
  std::vector<uint64_t> Unanswered(const NodeId& peer) const;

  OwnState& own_;
  PeerTable& peers_;
  Links& links_;
  Transfers& transfers_;
  Rejections& rejections_;
  ports::EventSink& events_;
  Listener& listener_;
  AskBook book_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_ASK_EXCHANGE_H_
