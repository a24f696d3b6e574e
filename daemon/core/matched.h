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
// a neighbour whose share is missing makes no difference. Nothing more is to be
// given to a neighbour while weight > 0, and what is kept is of one round or two.
#ifndef DFL_CORE_MATCHED_H_
#define DFL_CORE_MATCHED_H_

#include <map>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/mass_ledger.h"

namespace dfl::core {

class MatchedFlows {
 public:
  // Nothing given to `to` is without its counterpart.
  bool MayGive(const NodeId& to) const;
  // `share`, of the weight w, was given or came. Where w <= 0 nothing is kept.
  void Gave(const NodeId& to, MassLedger::Share share, double w);
  void Got(const NodeId& from, absl::Span<const float> share, double w);
  // vector += what is without its counterpart, with its sign.
  void AddTo(absl::Span<float> vector);
  void Clear();

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

}  // namespace dfl::core

#endif  // DFL_CORE_MATCHED_H_
