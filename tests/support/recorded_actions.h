// Where tests let an algorithm's actions go.
#ifndef DFL_TESTS_SUPPORT_RECORDED_ACTIONS_H_
#define DFL_TESTS_SUPPORT_RECORDED_ACTIONS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"

namespace dfl::core {

// Keeps actions in the order in which they were given, to be looked at or
// carried out later. A Push keeps the values of the moment at which it was
// given.
class RecordedActions : public Actions {
 public:
  RecordedActions() = default;
  // A Push without values gets those of `parameters`, which must outlive this.
  explicit RecordedActions(const std::vector<float>* parameters)
      : parameters_(parameters) {}
  RecordedActions(RecordedActions&&) = default;
  RecordedActions& operator=(RecordedActions&&) = default;

  void Do(Action action) override {
    if (auto* push = std::get_if<Push>(&action)) Keep(*push);
    actions_.push_back(std::move(action));
  }

  size_t size() const { return actions_.size(); }
  bool empty() const { return actions_.empty(); }
  const Action& operator[](size_t i) const { return actions_.at(i); }
  auto begin() { return actions_.begin(); }
  auto end() { return actions_.end(); }
  auto begin() const { return actions_.begin(); }
  auto end() const { return actions_.end(); }
  void clear() {
    actions_.clear();
    values_.clear();
  }

 private:
  void Keep(Push& push) {
    if (push.values.empty() && parameters_ == nullptr) return;
    values_.emplace_back(push.values.begin(), push.values.end());
    if (push.values.empty()) values_.back() = *parameters_;
    push.values = values_.back();
  }

  const std::vector<float>* parameters_ = nullptr;
  std::vector<Action> actions_;
  std::list<std::vector<float>> values_;  // of pushes; they do not move
};

// Carries each action out as it is given, by `carry_out`.
class ActionsCarriedOut : public Actions {
 public:
  explicit ActionsCarriedOut(std::function<void(Action)> carry_out)
      : carry_out_(std::move(carry_out)) {}
  void Do(Action action) override { carry_out_(std::move(action)); }

 private:
  std::function<void(Action)> carry_out_;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_SUPPORT_RECORDED_ACTIONS_H_
