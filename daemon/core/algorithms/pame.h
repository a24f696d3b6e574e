// PaME, partial message exchange. [PaME] Alg. 1 and 2, eq. (3), (5)-(7).
//
// Step k at node i:
//   1. If k = 0 mod kappa_i: ask m_i^k random neighbours; each answers with
//      s_j random coordinates of its model; v = partial mean. Else v = w.
//   2. w <- v - g_i(v) / (sigma_i^k m_i^k)
//   3. sigma_i^{k+1} = gamma_i sigma_i^k
//
// A node asks `lookahead` steps ahead, so that answers travel while it computes
// a gradient; an answer is mixed with the w it meets. With fewer answers at the
// deadline it goes on with those that came. [PaME] sec. III-E.
#ifndef DFL_CORE_ALGORITHMS_PAME_H_
#define DFL_CORE_ALGORITHMS_PAME_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/rounds/model_mixer.h"
#include "daemon/core/rounds/pull_round.h"

namespace dfl::core {

AlgorithmInfo PameInfo();

// m = max(1, ceil(nu |N| - 1e-9)), and 1 without neighbours. [PaME] sec. V.
int64_t PameParticipants(double nu, int64_t neighbours);

class Pame : public Algorithm {
 public:
  // `decisions` must outlive it.
  Pame(AlgorithmContext context, Decisions& decisions);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return k_; }
  bool parameters_settled() const override { return !mixed_; }
  // sigma, m, kappa and the step size 1/(sigma m).
  std::map<std::string, double> Gauges() const override;

 private:
  // The knobs, by their symbols in [PaME].
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double nu;
    double p;
    double sigma0;
    double gamma;
    IntRange kappa;
    int64_t extra_asked;
    bool asks_ahead;  // lookahead is 1
  };
  void VisitState(StateFields& fields) override;
  void MoveTo(int64_t k) override { Start(k); }
  Pace PaceOf(int64_t k) const override {
    return {k, k == 0 ? 0 : (k - 1) / kappa_ + 1};
  }

  void Start(int64_t k);
  void On(StepBegins event, Actions& actions);
  void On(const GradientReady& event, Actions& actions);
  void On(const AskArrived& event, Actions& actions);
  void On(PlanChanged event);

  bool IsExchangeStep(int64_t k) const { return k % kappa_ == 0; }
  void AskFor(int64_t step, Actions& actions);
  // Mixes what came, if all is here that the exchange waits for.
  void MixIfReady(Actions& actions);
  void Mix(Actions& actions);
  void BeginGradient(Actions& actions);
  // The partial mean, or the plan's aggregation rule in its place, in which
  // the node's own values count too.
  void MixByMean(const std::vector<AnswerArrived>& answers);
  void MixByRule(const std::vector<AnswerArrived>& answers);
  void MixBuffers(const std::vector<AnswerArrived>& answers);

  NodePlan plan_;
  Settings settings_;  // of plan_: read in every step
  const NodeVectors vectors_;
  Decisions& decisions_;

  int64_t kappa_ = 1;
  int64_t k_ = 0;
  double sigma_ = 0;
  int64_t m_ = 1;
  PullRound exchange_;
  ModelMixer mixer_;
  int64_t asked_for_ = 0;  // the step that mixes what exchange_ brings
  bool mixed_ = false;     // parameters hold v, not w^k
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_PAME_H_
