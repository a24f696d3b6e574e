// Models that are pulled: who was asked, what came, and how long the rest is
// waited for. PaME and KD-PDFL ask in this form, one question at a time:
//
//   Begin    asks some of the neighbours, drawn at random
//   Wait     nothing else is left to do, so the deadline begins
//   ready()  enough answers are here, or nobody is left who could answer
//   End      hands over what came; the others need not answer any more
//
// Answers to an earlier question, or of a node that was not asked, are ignored.
#ifndef DFL_CORE_ROUNDS_PULL_ROUND_H_
#define DFL_CORE_ROUNDS_PULL_ROUND_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"

namespace dfl::core {

class PullRound {
 public:
  // The timer of the deadline.
  static constexpr uint64_t kDeadlineTimer = 1;

  // Asks `count` of `neighbours`, or all if there are fewer; `need` answers are
  // enough, or all that can come. A question that is still open is cancelled.
  void Begin(absl::Span<const Neighbour> neighbours, int64_t count,
             int64_t need, Decisions& decisions, Actions& actions);
  // Forgets a question that is open; nobody is told.
  void Drop();

  void OnAnswer(AnswerArrived answer);
  void OnMissing(const AnswerMissing& missing);

  // Sets the deadline, unless the round is ready.
  void Wait(absl::Duration deadline, Actions& actions);
  // True if `timer` is the deadline of an open question, after Wait: reports
  // who is missing, and the caller goes on to End.
  bool OnTimer(uint64_t timer, Actions& actions);

  // Between Begin and End.
  bool open() const { return open_; }
  // Wait was called, and there is nothing to wait for.
  bool ready() const { return waiting_ && complete(); }

  // Closes the question. Returns the first `need` answers as they came.
  std::vector<AnswerArrived> End(Actions& actions);

  // Only the name of the newest question: algorithm.h says why.
  void VisitState(StateFields& fields);

 private:
  bool complete() const {
    return static_cast<int64_t>(answers_.size()) >= need_ ||
           outstanding_.empty();
  }

  uint64_t ask_ = 0;  // the newest question
  bool open_ = false;
  bool waiting_ = false;
  int64_t need_ = 0;
  std::set<NodeId> outstanding_;
  std::vector<AnswerArrived> answers_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_PULL_ROUND_H_
