// DRACO: asynchronous updates in continuous time, with computing and sending
// apart. [thesis] ch. 3, Alg. 3. There are no rounds and nobody waits.
//
// Node i, for ever:
//   trains     y_0 = theta; B times y <- y - eta g_i(y); delta_i = y_B - y_0,
//              relative to the theta it started from, while theta goes on
//              moving; with own_update theta <- theta + delta_i
//   sends      delta_i to its out-neighbours: when it is done, every T seconds,
//              or at Poisson times; a newer delta replaces an unsent one
//   receives   delta_j. It is dropped when older than gamma_max, or when psi
//              were accepted in this period; else it goes into the
//              superposition window. The first opens the window;
//              `window` seconds later
//                theta <- theta + sum q_ji delta_j                  def. 3.1
//              q_ji = 1/(j's out-neighbours), nothing renormalised.
//   unifies    At the start of period M (each lasts P seconds) the hub
//              C[M mod |C|], C = the members of the highest degree, sends its
//              theta; everyone sets theta to it and passes it on, once. Windows
//              and training go on.                               sec. 3.2.2
//
// An *iteration* is one finished training, so at a boundary no gradient is
// under way. The parameters move between StepBegins and StepDone only: what
// would move them at a boundary (while the node evaluates, or is paused) is put
// off to StepBegins. No time is read: periods, windows and sending are timers,
// and the age of a delta comes with it (RemoteModel::age).
#ifndef DFL_CORE_ALGORITHMS_DRACO_H_
#define DFL_CORE_ALGORITHMS_DRACO_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"

namespace dfl::core {

AlgorithmInfo DracoInfo();

class Draco : public Algorithm {
 public:
  // `decisions` must outlive it.
  Draco(AlgorithmContext context, Decisions& decisions);

  void Handle(Event event, Actions& actions) override;
  // Trainings finished.
  int64_t step() const override { return step_; }
  // Any theta may be sent.
  bool parameters_settled() const override { return true; }
  // Deltas accepted, dropped_late and dropped_full (beyond psi); period,
  // unified (of the last unification) and step_size.
  std::map<std::string, double> Gauges() const override;

 private:
  // When updates are sent.
  enum class Schedule { kOnUpdate, kEvery, kPoisson };
  // The knobs, by their symbols.
  struct Settings {
    explicit Settings(const Knobs& knobs);

    double eta;
    int64_t batches;
    Schedule schedule;
    double send_every;
    absl::Duration gamma_max;
    double window;  // seconds
    int64_t psi;
    double period;  // seconds
    bool own_update;
  };
  // Null model: none.
  struct Unification {
    NodeId from;
    std::optional<RemoteModel> model;
  };

  void VisitState(StateFields& fields) override;
  void MoveTo(int64_t k) override { step_ = k; }
  Pace PaceOf(int64_t k) const override {
    return {TimesAtMost(static_cast<double>(settings_.batches), k), k};
  }
  void Resume(Actions& actions) override;
  void Start(int64_t step, Actions& actions);
  void ChangePlan(NodePlan plan, Actions& actions);
  void OnStepBegins(Actions& actions);
  void OnGradient(Actions& actions);
  void OnPush(PushArrived push, Actions& actions);
  void OnTimer(uint64_t timer, Actions& actions);

  void Send(absl::Span<const float> delta, Actions& actions);
  void WaitToSend(Actions& actions);
  void Receive(const RemoteModel& model, Actions& actions);
  void CloseWindow();

  void WaitForPeriod(Actions& actions);
  void BeginPeriod(int64_t period);
  const NodeId& HubOf(int64_t period) const;
  void Lead(Actions& actions);
  void HearUnification(PushArrived push, Actions& actions);
  void Unify(Unification unification, Actions& actions);

  NodePlan plan_;
  Settings settings_;  // of plan_
  const NodeVectors vectors_;
  Decisions& decisions_;

  int64_t step_ = 0;
  bool at_boundary_ = true;

  // Training.
  int64_t batches_left_ = 0;
  // y, [n]; shared with the gradient under way.
  std::shared_ptr<FlatVector> reference_;
  FlatVector delta_;   // of the training under way, [n]
  FlatVector unsent_;  // of the last one, for the sending schedule, [n]
  bool has_unsent_ = false;

  // Receiving.
  FlatVector window_;  // sum q delta, [n]
  bool window_open_ = false;
  bool window_over_ = false;  // to be applied at StepBegins
  int64_t accepted_ = 0;
  int64_t accepted_in_period_ = 0;
  int64_t late_ = 0;
  int64_t full_ = 0;

  // Unification.
  int64_t period_ = 0;       // M
  int64_t unified_ = 0;      // the newest M of a unification; 0: none yet
  bool heard_ = false;       // of one of another node, since it started
  bool leads_ = false;       // at StepBegins
  Unification unification_;  // at StepBegins
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_DRACO_H_
