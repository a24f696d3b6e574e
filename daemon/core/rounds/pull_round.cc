#include "daemon/core/rounds/pull_round.h"

#include <algorithm>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {

void PullRound::Begin(absl::Span<const Neighbour> neighbours, int64_t count,
                      int64_t need, Decisions& decisions, Actions& actions) {
  if (open_) actions.Do(CancelAsk{ask_});
  Drop();
  std::vector<NodeId> candidates;
  candidates.reserve(neighbours.size());
  for (const Neighbour& neighbour : neighbours) {
    candidates.push_back(neighbour.node);
  }
  const auto all = static_cast<int64_t>(candidates.size());
  std::vector<NodeId> peers =
      decisions.ChooseNeighbours(candidates, std::min(all, count));
  ++ask_;
  open_ = true;
  need_ = std::min(need, static_cast<int64_t>(peers.size()));
  outstanding_.insert(peers.begin(), peers.end());
  actions.Do(Ask{ask_, std::move(peers)});
}

void PullRound::Drop() {
  open_ = waiting_ = false;
  outstanding_.clear();
  answers_.clear();
}

void PullRound::OnAnswer(AnswerArrived answer) {
  if (!open_ || answer.ask != ask_) return;
  if (outstanding_.erase(answer.from) == 0) return;
  if (static_cast<int64_t>(answers_.size()) < need_) {
    answers_.push_back(std::move(answer));
  }
}

void PullRound::OnMissing(const AnswerMissing& missing) {
  if (open_ && missing.ask == ask_) outstanding_.erase(missing.from);
}

void PullRound::Wait(absl::Duration deadline, Actions& actions) {
  waiting_ = true;
  if (!complete())
    actions.Do(WakeAfter{kDeadlineTimer, deadline, /*for_neighbours=*/true});
}

bool PullRound::OnTimer(uint64_t timer, Actions& actions) {
  if (timer != kDeadlineTimer || !waiting_) return false;
  actions.Do(Missed{{outstanding_.begin(), outstanding_.end()},
                    need_,
                    static_cast<int64_t>(answers_.size())});
  return true;
}

std::vector<AnswerArrived> PullRound::End(Actions& actions) {
  actions.Do(CancelTimer{kDeadlineTimer});
  if (!outstanding_.empty()) actions.Do(CancelAsk{ask_});
  std::vector<AnswerArrived> answers = std::move(answers_);
  Drop();
  return answers;
}

void PullRound::VisitState(StateFields& fields) {
  fields.Name("last_ask", ask_);
}

}  // namespace dfl::core
