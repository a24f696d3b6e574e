// Plain local SGD: no exchange. What training alone gives.
#ifndef DFL_CORE_ALGORITHMS_LOCAL_H_
#define DFL_CORE_ALGORITHMS_LOCAL_H_

#include <cstdint>
#include <map>
#include <string>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"

namespace dfl::core {

AlgorithmInfo LocalInfo();

// w <- w - eta_k g(w), with eta_k = eta, or 1/(sigma0 gamma^k m) when sigma0 is
// set: then it takes the steps that PaME takes, alone.
class Local : public Algorithm {
 public:
  explicit Local(const AlgorithmContext& context);

  void Handle(Event event, Actions& actions) override;
  int64_t step() const override { return k_; }
  int64_t gradients() const override { return k_; }
  bool parameters_settled() const override { return true; }
  void JumpTo(int64_t round) override;
  std::map<std::string, double> Gauges() const override;

 private:
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
  double StepSize() const;

  Settings settings_;
  const NodeVectors vectors_;
  int64_t k_ = 0;
  double decay_ = 1;  // gamma^k
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_LOCAL_H_
