// KD-PDFL, personalised learning with weights by distillation. [thesis] ch. 4,
// Alg. 4
//
// Every round is a step of local SGD, but for these:
//   r = 0 mod T_ex  The node wakes as star: it pulls theta_j from a random
//      subset of its neighbours, runs one batch B through its own model and
//      theirs, p = softmax(logits), and takes
//        d_j = (1/|B|) sum_x sum_l (p_i,l(x) - p_j,l(x))^2       eq. (4.3)
//        grad J = mu1 d + mu2 grad G(w)
//        w_j <- max(0, w_j - grad J_j / ||grad J||)              eq. (4.2)
//        theta <- c theta + (1 - c) sum_j w'_j theta_j           eq. (4.4)
//      over those received, with G(w) = ||w||^2/2 - log(delta + sum w), the sum
//      over the whole row; w' = w normalised over those received; c =
//      min(|D_i|/c_base, 1/(received + 1)). Clients that predict alike weigh
//      more.
//   r = 1 mod T_ex  With knob `adopt` the star sends theta to those whose
//      models it had; they take it as theirs instead of a local step.
//
// The weights start at 1/m. By default each node wakes on its own timer, every
// T_ex rounds of its own, from a phase that it draws once; rounds of different
// nodes need not agree.
#ifndef DFL_CORE_ALGORITHMS_KD_PDFL_H_
#define DFL_CORE_ALGORITHMS_KD_PDFL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/pull_round.h"

namespace dfl::core {

AlgorithmInfo KdPdflInfo();

class KdPdfl : public Algorithm {
 public:
  // What a round as star came to; lists are in the order of `received`.
  struct Star {
    std::vector<NodeId> received;  // sorted
    std::vector<double> distances;
    std::vector<double> gradient;  // of J
    double norm = 0;               // of that
    std::vector<double> raw;       // weights before the max with 0
    double own_share = 1;          // c
  };

  // `decisions` must outlive it.
  KdPdfl(AlgorithmContext context, Decisions& decisions);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return r_; }
  // theta changes with the last event of a round only.
  bool parameters_settled() const override { return true; }
  // step_size; received, own_share (c) and distance (the mean of d) of the last
  // round as star; nonzero_weights, of neighbours.
  std::map<std::string, double> Gauges() const override;

  // w_ij of a neighbour; of another member the 1/m that it started with.
  double weight(const NodeId& node) const;
  const Star& last_star() const { return last_star_; }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    int64_t period;  // T_ex
    int64_t subset;
    double mu1;
    double mu2;
    double c_base;
    bool adopt;
    bool own_timers;  // stars
    bool literal_rounds;
  };

  void VisitState(StateFields& fields) override;
  void MoveTo(int64_t k) override { Start(k); }
  Pace PaceOf(int64_t k) const override;
  void Start(int64_t round);
  void OnStepBegins(Actions& actions);
  void OnGradient(Actions& actions);
  void OnAnswer(AnswerArrived answer, Actions& actions);
  void OnPush(PushArrived push);
  void OnPredicted(const Predicted& predicted, Actions& actions);
  void ChangePlan(NodePlan plan);

  // The iterations at which a star may wake are those `phase` mod T_ex, from
  // T_ex on.
  int64_t Phase() const;
  // How many iterations below `k`, from T_ex on, are `phase` mod T_ex.
  int64_t TurnsBelow(int64_t k, int64_t phase) const;
  bool IsTurn() const;
  bool WakesAsStar() const;
  // Alg. 4: nobody trains while one is star, and in the round after.
  bool TrainsNow() const;
  void BeginStar(Actions& actions);
  void PredictIfReady(Actions& actions);
  void PredictModels(Actions& actions);
  // Those whose predictions can be compared, with their distances.
  Star Compare(const Predicted& predicted) const;
  void UpdateWeights(Star& star);
  void Mix(Star& star);
  // `counts`: a turn that ends is a round; not so if its predictions failed.
  void FinishRound(Actions& actions, bool counts = true);

  NodePlan plan_;
  Settings settings_;  // of plan_
  const NodeVectors vectors_;
  Decisions& decisions_;
  int64_t train_rows_;

  int64_t r_ = 0;
  std::map<NodeId, double> weights_;  // of neighbours; absent: 1/m
  // A round as star: what is asked for, then what predicts.
  PullRound exchange_;
  std::optional<std::map<NodeId, RemoteModel>> predicting_;
  Star last_star_;
  std::vector<NodeId> deliver_to_;      // in the next round
  std::set<NodeId> answered_;           // whose theta may be adopted
  std::optional<RemoteModel> adopted_;  // in the next round
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_KD_PDFL_H_
