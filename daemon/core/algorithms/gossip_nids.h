// gossip-nids: local steps with a control variate; random pairs agree on one
// coded difference that both apply. An algorithm of this project:
// docs/papers/gossip-nids.md has its rules and its theory. No rounds, no
// barriers, no replicas.
//
// Node i holds x and the control variate D, at first 0, and for each block of
// 256 parameters a scale (vector/mod_code.h). For ever:
//
//   step      x <- x - alpha (g_i(x) + D)
//   offers    after K to 3K own steps, drawn anew each time: x in `mod` to one
//             random neighbour that is up
//   answers   an offer of i is decoded against x_j, which gives d^ near x_i -
//             x_j. j chooses gamma and beta, applies +d^ and answers
//   applies   the answer that comes, however late, once: -d^
//
//   APPLY(v)  x <- x + gamma v;  D <- D - beta v
//             beta = c_k gamma / (alpha K),  c_k = c + (c0 - c) 2^(-k/6),
//             k the exchanges that j has taken part in before this one
//
// alpha and K in beta are the plan's, the same on every node. What both apply
// is the same to the last bit, so sum x and sum D stay, whatever the decoding
// made of the offer (mass/answer_ledger.h). Alone, D is 0 and this is SGD.
//
// The gain guard: a node watches its scales. When their mean has been above its
// own running mean in ten exchanges in a row, which is what a gain above the
// true bound looks like, the node halves c and c0 in what it answers, and says
// so in the gauge gain_factor.
//
// The parameters move between StepBegins and StepDone only, and never while a
// gradient is under way: what comes in between waits.
#ifndef DFL_CORE_ALGORITHMS_GOSSIP_NIDS_H_
#define DFL_CORE_ALGORITHMS_GOSSIP_NIDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/mass/answer_ledger.h"
#include "daemon/core/vector/mod_code.h"

namespace dfl::core {

AlgorithmInfo GossipNidsInfo();

// The gain c of D must stay below this: 1/(2 (1 + (2w/M)^2/6)).
double GossipNidsBound(int64_t modulus, double window);
// c_k.
double GossipNidsGain(double c, double c0, int64_t exchanges);

// What a node needs to know of the plan beside its own knobs.
struct GossipFacts : AlgorithmFacts {
  double alpha = 0;       // of the plan, whatever this node's is; 0: as here
  int64_t period = 0;     // K likewise
  int64_t last_step = 0;  // the plan's stop.steps; 0: none
  int block = kModBlock;  // smaller in tests only
};

class GossipNids : public Algorithm {
 public:
  // `decisions` must outlive it.
  GossipNids(AlgorithmContext context, Decisions& decisions);

  void Handle(Event event, Actions& actions) override;
  // Iterations finished: own steps, and visits without a gradient.
  int64_t step() const override { return step_; }
  // Any x may be sent.
  bool parameters_settled() const override { return true; }
  double MassTaken(const NodeId& from) const override {
    return ledger_.taken(from);
  }
  EdgeBooks BooksWith(const NodeId& peer) const override {
    return ledger_.BooksWith(peer);
  }
  // exchanges, offers, answers, refused_share (of the blocks of the last
  // answer), scale (the mean code), gain, gain_factor, mass_imbalance,
  // mass_repeats, step_size.
  std::map<std::string, double> Gauges() const override;

  // ---- for monitors and tests
  const AnswerLedger& ledger() const { return ledger_; }
  absl::Span<const float> control() const { return control_; }
  absl::Span<const BlockScale> scales() const { return scales_; }
  int64_t exchanges() const { return exchanges_; }

 private:
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const NodePlan& plan);

    double alpha;
    int64_t period;
    ModSpec spec;
    double gamma;
    double c;
    double c0;
    int64_t settle;
    double plan_alpha;    // in beta
    int64_t plan_period;  // in beta
    int64_t last_step;
  };
  struct Waiting {
    NodeId from;
    std::shared_ptr<const ModOffer> offer;
    std::vector<float> buffers;
  };

  void VisitState(StateFields& fields) override;
  void MoveTo(int64_t k) override { step_ = k; }
  Pace PaceOf(int64_t k) const override {
    return {k, k / (2 * settings_.period)};
  }
  void Resume(Actions& actions) override { ledger_.SendAgain(actions); }

  void Start(const Started& event);
  void ChangePlan(NodePlan plan);
  void BeginEpoch();
  void OnOffer(PushArrived push);
  void OnGradient(Actions& actions);

  // At a boundary: what has come is applied and answered.
  void Exchange(Actions& actions);
  void ApplyAnswers();
  void AnswerOffer(const Waiting& waiting, Actions& actions);
  // x <- x + gamma v; D <- D - beta v.
  void Apply(double gamma, double beta, absl::Span<const float> v);
  void MixBuffers(double gamma, const std::vector<float>& received);
  void CountExchange();

  void DrawPeriod();
  void Offer(Actions& actions);
  // Gives the blocks without a scale their first one.
  void MakeFirstScales();
  // An exchange has changed the scales.
  void WatchScales();
  // The mean code.
  double MeanScale() const;
  double Gain() const;

  NodePlan plan_;
  Settings settings_;  // of plan_
  const NodeVectors vectors_;
  Decisions& decisions_;

  int64_t step_ = 0;
  int64_t steps_to_offer_ = 0;
  std::set<NodeId> up_;

  FlatVector control_;              // D, [n]
  FlatVector start_;                // x^0 while a block has no scale, or empty
  std::vector<BlockScale> scales_;  // [blocks]
  int64_t exchanges_ = 0;           // kappa
  AnswerLedger ledger_;
  std::vector<Waiting> waiting_;  // offers, one for each neighbour

  // The guard.
  double gain_factor_ = 1;
  double usual_scale_ = 0;  // running mean of MeanScale(); 0: none yet
  int64_t growing_ = 0;     // exchanges in a row above it

  // Gauges.
  int64_t offers_ = 0;
  int64_t answers_ = 0;
  double refused_share_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_GOSSIP_NIDS_H_
