// Plain local SGD: no exchange. What training alone gives.
#ifndef DFL_CORE_ALGORITHMS_LOCAL_H_
#define DFL_CORE_ALGORITHMS_LOCAL_H_

#include <cstdint>
#include <map>
#include <string>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/local_optimizer.h"

namespace dfl::core {

AlgorithmInfo LocalInfo();

// w <- w - eta_k g(w), with eta_k = eta, or 1/(sigma0 gamma^k m) when sigma0 is
// set: then it takes the steps that PaME takes, alone. The plan may name
// another optimiser.
class Local : public Algorithm {
 public:
  explicit Local(const AlgorithmContext& context);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return k_; }
  bool parameters_settled() const override { return true; }
  std::map<std::string, double> Gauges() const override;

 private:
  void MoveTo(int64_t k) override { Start(k); }
  Pace PaceOf(int64_t k) const override { return {k, 0}; }

  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    double sigma0;
    double gamma;
    double m;
  };

  void VisitState(StateFields& fields) override;
  void Start(int64_t step);
  void TakeStep();
  double StepSize() const;
  // Without the schedule of an optimiser.
  double BaseStep() const;

  Settings settings_;
  const NodeVectors vectors_;
  int64_t k_ = 0;
  double decay_ = 1;  // gamma^k
  LocalOptimizer optimizer_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_LOCAL_H_
