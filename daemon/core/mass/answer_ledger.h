// The ledger of answers (vector/mod_code.h): what one end of an exchange has
// applied, the other must apply too, exactly once, with the opposite sign.
//
// Node j answers an offer o of i and applies the difference d^ at once; i
// applies it when the answer comes. An answer is numbered by its offer, so the
// numbers of an edge rise but are not consecutive.
//
//   giving end   at most one answer for each neighbour is out; it is repeated
//                unchanged until it is delivered, and no other is made
//   taking end   an answer to an offer that this node has made, above the last
//                one taken; any other is ignored
//
//   sum_i D_i + sum of beta d^ over the answers not yet applied = 0
//
// Taken answers are added up until the next boundary: two vectors for the node,
// however many come.
//
// A new tracker epoch empties the ledger, and numbers begin anew. The probe by
// which two ends compare their books (mass_ledger.h) is of beta d^.
#ifndef DFL_CORE_MASS_ANSWER_LEDGER_H_
#define DFL_CORE_MASS_ANSWER_LEDGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/edge_books.h"
#include "daemon/core/vector/mod_code.h"

namespace dfl::core {

class StateFields;

class AnswerLedger {
 public:
  // ---- offering

  // The number of the next offer to `to`: 1, 2, ...
  uint32_t NextOffer(const NodeId& to) { return ++edges_[to].offered; }

  // ---- giving

  // Whether an offer of this number may be answered: it is above the last one
  // that was, and nothing is out.
  bool MayAnswer(const NodeId& to, uint32_t number) const;
  // An answer to `to` is out.
  bool Owes(const NodeId& to) const;
  // Gives `answer`, whose difference [n] the caller applies. MayAnswer.
  void Give(const NodeId& to, int64_t round,
            std::shared_ptr<const ModAnswer> answer,
            std::shared_ptr<const FlatVector> difference,
            std::vector<float> buffers, Actions& actions);
  void OnDelivered(const Delivered& delivered);
  // Sends what is out once more.
  void SendAgain(Actions& actions) const;

  // ---- taking

  // Takes an answer of n values; null: it was taken before, or answers no offer
  // of this node.
  const ModAnswer* Take(const MassArrived& arrived, size_t n);
  // What was taken since the last call: the sums of gamma d^ and beta d^, [n]
  // or empty.
  struct Taken {
    FlatVector moves;
    FlatVector mass;
    // Module buffers of the givers, with gamma.
    std::vector<std::pair<double, std::vector<float>>> buffers;

    bool empty() const { return moves.empty(); }
  };
  Taken TakeOut() { return std::exchange(waiting_, {}); }
  double taken(const NodeId& from) const;

  // Begins a new epoch, in which nothing was offered, given or taken.
  void Reset();

  // The whole state, for vectors of n and b buffers.
  void VisitState(StateFields& fields, size_t n, size_t b);

  // ---- for the monitor and tests

  EdgeBooks BooksWith(const NodeId& peer) const;
  // As MassLedger::Imbalance.
  double Imbalance() const;
  // vector += the sum of beta d^ over what was given and is not known to be
  // delivered, and what was taken and not applied.
  void AddUnsettled(absl::Span<float> vector) const;
  // An answer that is out. Borrowed until the next change.
  struct OutAnswer {
    NodeId to;
    const ModAnswer* answer = nullptr;
    const FlatVector* difference = nullptr;
  };
  std::vector<OutAnswer> out() const;
  // The number of the newest answer taken from `from`; 0: none.
  uint32_t last_taken(const NodeId& from) const;
  // The number of answers that came again.
  int64_t repeats() const { return repeats_; }

 private:
  struct Out {
    std::shared_ptr<const ModAnswer> answer;  // null: nothing is out
    std::shared_ptr<const FlatVector> difference;
    std::vector<float> buffers;
    int64_t round = 0;
    double probe = 0;
  };
  struct Edge {
    uint32_t offered = 0;   // the last offer to it
    uint32_t answered = 0;  // its last offer that was answered
    Out out;
    uint32_t delivered = 0;  // the last answer known to be taken
    double given = 0;        // probe, of all delivered
    double confirmed = 0;    // the taker's, of the same
    uint32_t taken = 0;      // the last answer taken from it
    double taken_probe = 0;  // probe, of all taken
  };
  // Each is one neighbour's.
  std::map<NodeId, Edge> edges_;
  Taken waiting_;
  int64_t repeats_ = 0;
};

// Fields of an offer that waits, for a vector of n; and of module buffers [b]
// that may be none.
void VisitOffer(StateFields& fields, ModOffer& offer, size_t n);
void VisitBuffers(StateFields& fields, std::vector<float>& buffers, size_t b);

// What the ledger keeps for each edge.
EdgeCost AnswerCost();

}  // namespace dfl::core

#endif  // DFL_CORE_MASS_ANSWER_LEDGER_H_
