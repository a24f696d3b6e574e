// What was given to neighbours and what came from them, made equal before it
// counts. NIDS and ANQ-NIDS move W/2 (phi_j - phi_i) over an edge: each end gives
// W/2 phi away and gets the other's. At the optimum these are not small but
// equal, so a node that had given and not got yet would be thrown far off. Only
// what has a counterpart counts; the rest is kept here, for each neighbour, with
// its weight and its sign:
//
//   given, and nothing got for it yet    weight > 0,  vector = + what was given
//   got, and nothing given for it yet    weight < 0,  vector = - what was got
//
// With u what the ledger conserves, u + the sum of these vectors is what counts:
// a neighbour whose share is missing makes no difference. While weight > 0 the
// neighbour is given no second share, and what is kept is of one round or two;
// NIDS renews the first one every round (Renew), since a difference of an old
// round that is applied late drives the network's slow modes to oscillate.
#ifndef DFL_CORE_MASS_MATCHED_H_
#define DFL_CORE_MASS_MATCHED_H_

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/mass/mass_ledger.h"

namespace dfl::core {

class MatchedFlows {
 public:
  // Nothing given to `to` is without its counterpart.
  bool MayGive(const NodeId& to) const;
  // `share`, of the weight w, was given or came. w = 0 came: a share that was
  // given before was renewed by that much.
  void Gave(const NodeId& to, MassLedger::Share share, double w);
  void Got(const NodeId& from, absl::Span<const float> share, double w);
  // Unless MayGive(to), after AddTo: makes what was given to `to` what it would be
  // now that `share`, of the weight w, would be given. Returns by how much it
  // changes: the caller gives that, of no weight.
  FlatVector Renew(const NodeId& to, absl::Span<const float> share, double w);
  // vector += what is without its counterpart, with its sign.
  void AddTo(absl::Span<float> vector);
  void Clear();
  // After AddTo; vectors are of `length`.
  void VisitState(StateFields& fields, size_t length);

  // The part of the neighbours, by weight, that is up and owes nothing; 1 where
  // there are none.
  double Present(const std::vector<Neighbour>& neighbours,
                 const std::vector<Neighbour>& up) const;

 private:
  struct Unmatched {
    double weight = 0;
    FlatVector vector;  // [n]
  };
  // Not looked at yet: most are matched by what comes in the same round.
  struct Given {
    NodeId to;
    MassLedger::Share share;
    double weight = 0;
  };

  // `sign`: +1 given, -1 got. What it matches is taken out in proportion.
  void Add(const NodeId& peer, float sign, absl::Span<const float> share,
           double w);
  // Looks at what was given to `to`.
  void Settle(const NodeId& to);

  std::vector<Given> given_;
  std::map<NodeId, Unmatched> unmatched_;  // weight is not 0
};

// Of MatchedFlows: a share given that was not looked at yet, and what is without
// its counterpart.
EdgeCost MatchedCost();

// The step before the exchange: x <- x - s alpha g - (1 - s) c, c the correction
// -alpha D as far as it counts; then phi = x + c. s = 1 is NIDS. s < 1, the part
// of the neighbours that is present, takes only that much of the step (which is 0
// at the optimum): a node that walks on alone for rounds, and is then corrected by
// all of the difference at once, starts to oscillate.
void TakeStep(double s, double alpha, absl::Span<const float> gradient,
              absl::Span<const float> correction, absl::Span<float> x);

}  // namespace dfl::core

#endif  // DFL_CORE_MASS_MATCHED_H_
