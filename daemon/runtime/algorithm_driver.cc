#include "daemon/runtime/algorithm_driver.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "daemon/base/status_macros.h"

namespace dfl::runtime {

AlgorithmDriver::~AlgorithmDriver() {
  for (const auto& [id, timer] : timers_) loop_.Cancel(timer);
}

void AlgorithmDriver::Install(
    std::unique_ptr<core::Algorithm> algorithm,
    std::unique_ptr<core::SeededDecisions> decisions) {
  algorithm_ = std::move(algorithm);
  decisions_ = std::move(decisions);
}

void AlgorithmDriver::Stop() {
  for (const auto& [id, timer] : timers_) loop_.Cancel(timer);
  timers_.clear();
  queue_.clear();
  algorithm_.reset();
}

void AlgorithmDriver::Halt() {
  for (const auto& [id, timer] : timers_) loop_.Cancel(timer);
  timers_.clear();
  queue_.clear();
  halted_ = true;
}

void AlgorithmDriver::Handle(core::Event event) {
  if (!algorithm_ || halted_) return;
  if (handling_) {
    queue_.push_back(std::move(event));
    return;
  }
  queue_.push_back(std::move(event));
  Drain();
}

void AlgorithmDriver::Drain() {
  handling_ = true;
  const absl::Time began = timing_ ? loop_.Now() : absl::Time();
  while (!queue_.empty() && algorithm_) {
    core::Event event = std::move(queue_.front());
    queue_.pop_front();
    algorithm_->Handle(std::move(event), *this);
  }
  handling_ = false;
  if (timing_ != nullptr) timing_->OnAlgorithm(loop_.Now() - began);
  actor_.OnHandled();
}

absl::Status AlgorithmDriver::Import(const core::DecisionsState& decisions,
                                     const core::AlgorithmState& state) {
  DFL_RETURN_IF_ERROR(decisions_->ImportState(decisions));
  handling_ = true;
  const absl::Status imported = algorithm_->ImportState(state, *this);
  Drain();
  return imported;
}

void AlgorithmDriver::Do(core::Action action) {
  std::visit(
      [this](const auto& a) {
        using A = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<A, core::WakeAfter>) {
          SetTimer(a);
        } else if constexpr (std::is_same_v<A, core::CancelTimer>) {
          CancelTimer(a);
        } else {
          actor_.Do(a);
        }
      },
      action);
}

void AlgorithmDriver::SetTimer(const core::WakeAfter& action) {
  ports::TimerId& timer = timers_[action.timer];
  if (timer != 0) loop_.Cancel(timer);
  const absl::Duration delay =
      action.for_neighbours ? actor_.Patience(action.delay) : action.delay;
  timer = loop_.After(delay, [this, id = action.timer] {
    timers_.erase(id);
    Handle(core::TimerFired{id});
  });
}

void AlgorithmDriver::CancelTimer(const core::CancelTimer& action) {
  const auto it = timers_.find(action.timer);
  if (it == timers_.end()) return;
  loop_.Cancel(it->second);
  timers_.erase(it);
}

}  // namespace dfl::runtime
