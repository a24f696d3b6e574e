// Matches what was given to neighbours with what came from them, before it
// counts. NIDS and ANQ-NIDS move W/2 (phi_j - phi_i) over an edge: each end
// gives W/2 phi away and gets the other's. At the optimum these are not small
// but equal, so a node that has given and not yet got would be thrown far off.
// Therefore only what has a counterpart counts. The rest is kept here for each
// neighbour, with its weight and its sign:
//
//   given, and nothing got for it yet    weight > 0,  vector = + what was given
//   got, and nothing given for it yet    weight < 0,  vector = - what was got
//
// What counts is u + the sum of these vectors, where u is what the ledger
// conserves. So a neighbour whose share is missing makes no difference. While
// weight > 0 the neighbour gets no second share, and what is kept belongs to
// one round or two. NIDS renews the first share every round (Renew): a
// difference of an old round that is applied late makes the network's slow
// modes oscillate.
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
  // Whether everything given to `to` has its counterpart.
  bool MayGive(const NodeId& to) const;
  // Call when `share` with weight w was given or has come. A share that comes
  // with w = 0 renews an earlier one: it is the change.
  void Gave(const NodeId& to, MassLedger::Share share, double w);
  void Got(const NodeId& from, absl::Span<const float> share, double w);
  // Replaces what was given to `to` by what would be given now: `share` with
  // weight w. Returns the change, which the caller gives with weight 0. Call
  // after AddTo, if MayGive(to) is false.
  FlatVector Renew(const NodeId& to, absl::Span<const float> share, double w);
  // vector += what has no counterpart, with its sign.
  void AddTo(absl::Span<float> vector);
  void Clear();
  // Call after AddTo. Vectors have `length` entries.
  void VisitState(StateFields& fields, size_t length);

  // The share of the neighbours, by weight, that are up and owe nothing; 1 if
  // there are none.
  double Present(const std::vector<Neighbour>& neighbours,
                 const std::vector<Neighbour>& up) const;

 private:
  struct Unmatched {
    double weight = 0;
    FlatVector vector;  // [n]
  };
  // Not matched yet: most shares find their counterpart in the same round.
  struct Given {
    NodeId to;
    MassLedger::Share share;
    double weight = 0;
  };

  // `sign`: +1 given, -1 got. What it matches is removed in proportion.
  void Add(const NodeId& peer, float sign, absl::Span<const float> share,
           double w);
  // Matches what was given to `to`.
  void Settle(const NodeId& to);

  std::vector<Given> given_;
  std::map<NodeId, Unmatched> unmatched_;  // weight is not 0
};

// The memory of MatchedFlows: a given share that is not matched yet, and what
// has no counterpart.
EdgeCost MatchedCost();

// The step before the exchange: x <- x - s alpha g - (1 - s) c, where c is the
// correction -alpha D as far as it counts; then phi = x + c. s is the share of
// the neighbours that are present; s = 1 is NIDS. With s < 1 only that much of
// the step (which is 0 at the optimum) is taken. A node that walks on alone for
// rounds, and is then corrected by the whole difference at once, would
// oscillate.
void TakeStep(double s, double alpha, absl::Span<const float> gradient,
              absl::Span<const float> correction, absl::Span<float> x);

}  // namespace dfl::core

#endif  // DFL_CORE_MASS_MATCHED_H_
