// The boundary between two steps, where the parameters hold w^k and nothing is
// running, and what is put off to it.
//
// Visit() comes from the loop and never from inside a call, once for all calls
// of Schedule() before it, and whether the node is at the boundary then or not.
// Loop only.
#ifndef DFL_RUNTIME_BOUNDARY_H_
#define DFL_RUNTIME_BOUNDARY_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/ports/loop.h"

namespace dfl::runtime {

class Boundary {
 public:
  Boundary(ports::Loop& loop, std::function<void()> visit)
      : loop_(loop), visit_(std::move(visit)) {}

  // A node begins at a boundary.
  bool here() const { return here_; }
  void Reach() { here_ = true; }
  void Leave() { here_ = false; }

  void Schedule() {
    if (scheduled_) return;
    scheduled_ = true;
    loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) return;
      scheduled_ = false;
      visit_();
    });
  }

  // `work` waits for DoWork().
  void PutOff(std::function<void()> work) { work_.push_back(std::move(work)); }
  // Does what was put off before, in that order. Returns whether there was any.
  bool DoWork() {
    const std::vector<std::function<void()>> all = std::exchange(work_, {});
    for (const auto& work : all) work();
    return !all.empty();
  }

 private:
  ports::Loop& loop_;
  const std::function<void()> visit_;
  bool here_ = true;
  bool scheduled_ = false;
  std::vector<std::function<void()>> work_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_BOUNDARY_H_
