// A node that is slow, as one whose share of a processor is small: whatever
// happens to it is handled one after the other, and each takes a while.
#ifndef DFL_TESTS_UNIT_MEMBERSHIP_THROTTLED_H_
#define DFL_TESTS_UNIT_MEMBERSHIP_THROTTLED_H_

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/simports/sim_loop.h"

namespace dfl::runtime {

// With a cost of 0 it is as fast as the loop below.
class ThrottledLoop final : public ports::Loop {
 public:
  ThrottledLoop(simports::SimLoop& loop, absl::Duration cost)
      : loop_(loop), cost_(cost) {}

  absl::Time Now() const override { return loop_.Now(); }
  void Post(std::function<void()> task) override {
    loop_.Post(
        [this, task = std::move(task)]() mutable { Handle(std::move(task)); });
  }
  ports::TimerId After(absl::Duration delay,
                       std::function<void()> task) override {
    const ports::TimerId timer = ++last_timer_;
    timers_[timer] =
        loop_.After(delay, [this, timer, task = std::move(task)]() mutable {
          Handle([this, timer, task = std::move(task)] {
            if (timers_.erase(timer) > 0) task();
          });
        });
    return timer;
  }
  void Cancel(ports::TimerId timer) override {
    const auto found = timers_.find(timer);
    if (found == timers_.end()) return;
    loop_.Cancel(found->second);
    timers_.erase(found);
  }

  // Runs `task` in its turn.
  void Handle(std::function<void()> task) {
    if (cost_ == absl::ZeroDuration()) {
      task();
      return;
    }
    free_ = std::max(free_, loop_.Now()) + cost_;
    loop_.After(free_ - loop_.Now(), std::move(task));
  }

 private:
  simports::SimLoop& loop_;
  const absl::Duration cost_;
  absl::Time free_ = absl::InfinitePast();
  ports::TimerId last_timer_ = 0;
  std::map<ports::TimerId, ports::TimerId> timers_;
};

// Both must outlive it.
class ThrottledTransport final : public ports::Transport,
                                 public ports::Transport::Handler {
 public:
  ThrottledTransport(ports::Transport& transport, ThrottledLoop& loop)
      : transport_(transport), loop_(loop) {
    transport_.SetHandler(this);
  }

  void SetHandler(ports::Transport::Handler* handler) override {
    handler_ = handler;
  }
  void Dial(const std::string& address) override { transport_.Dial(address); }
  void Close(ports::LinkId link, const absl::Status& reason) override {
    transport_.Close(link, reason);
  }
  absl::Status Send(ports::LinkId link, ports::Frame frame) override {
    return transport_.Send(link, std::move(frame));
  }
  int64_t max_queued_bytes() const override {
    return transport_.max_queued_bytes();
  }
  int64_t UnsentBytes(ports::LinkId link) const override {
    return transport_.UnsentBytes(link);
  }

  absl::Status Admit(const ports::PeerIdentity& peer) override {
    return handler_->Admit(peer);
  }
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& peer,
                const std::string& address) override {
    loop_.Handle([this, link, peer, address] {
      handler_->OnLinkUp(link, peer, address);
    });
  }
  void OnDialFailed(const std::string& address,
                    const absl::Status& status) override {
    loop_.Handle(
        [this, address, status] { handler_->OnDialFailed(address, status); });
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override {
    loop_.Handle([this, link, frame = std::move(frame)]() mutable {
      handler_->OnFrame(link, std::move(frame));
    });
  }
  void OnWritable(ports::LinkId link) override {
    loop_.Handle([this, link] { handler_->OnWritable(link); });
  }
  void OnLinkDown(ports::LinkId link, const absl::Status& reason) override {
    loop_.Handle([this, link, reason] { handler_->OnLinkDown(link, reason); });
  }

 private:
  ports::Transport& transport_;
  ThrottledLoop& loop_;
  ports::Transport::Handler* handler_ = nullptr;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_MEMBERSHIP_THROTTLED_H_
