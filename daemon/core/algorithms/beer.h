// BEER: gradient tracking with compressed differences. [BEER] Alg. 1. V^0 =
// grad F(X^0), replicas H = G = 0 at first; a round at node i:
//
//   x <- x + gamma sum_j W_ij (h_j - h_i) - eta v
//   h_i <- h_i + C(x - h_i), sent
//   v <- v + gamma sum_j W_ij (g_j - g_i) + grad f_i(new x) - grad f_i(old x)
//   g_i <- g_i + C(v - g_i), sent
//
// with the h and g of before the round on the right. Both travel in one parcel
// of length 2 n at the round's end. V is kept as z = v - grad f_i(x), which
// only transfers move: gamma W_ij g_i goes from i to j with each parcel, so the
// sum of z over the nodes stays 0. What went with this round's g counts from
// the next v on.
#ifndef DFL_CORE_ALGORITHMS_BEER_H_
#define DFL_CORE_ALGORITHMS_BEER_H_

#include "absl/strings/string_view.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/compressed_rounds.h"

namespace dfl::core {

AlgorithmInfo BeerInfo();

class Beer : public CompressedRounds {
 public:
  // `decisions` must outlive it.
  Beer(AlgorithmContext context, Decisions& decisions);

  FlatVector Auxiliary(absl::string_view symbol) const override {
    return symbol == "v" ? v_ : FlatVector();
  }

 private:
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetState() override;
  void VisitState(StateFields& fields) override;

  // The step of x, and the gradient there.
  void Move(Actions& actions);

  bool begun_ = false;  // a gradient at the present x has been asked for
  bool moved_ = false;  // in this round
  FlatVector v_;        // [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_BEER_H_
