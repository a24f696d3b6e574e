// A source that looks again and again, on a thread of its own, so that a name
// server that does not answer holds up nobody else.
#ifndef DFL_DISCOVERY_POLLED_SOURCE_H_
#define DFL_DISCOVERY_POLLED_SOURCE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "daemon/discovery/source.h"
#include "daemon/threads/loose_thread.h"

namespace dfl::discovery {

struct PollPeriods {
  absl::Duration normal = absl::Seconds(10);
  // After a look that met trouble.
  absl::Duration troubled = absl::Seconds(2);
};

// LookNow is thread-safe; Start and Stop are for one thread.
class PolledSource final : public Source {
 public:
  // One look. It may block. It must own all that it touches: a look that hangs
  // outlives the source.
  using Look = std::function<Findings()>;

  PolledSource(std::string name, Look look, PollPeriods periods = {});
  ~PolledSource() override;
  PolledSource(const PolledSource&) = delete;
  PolledSource& operator=(const PolledSource&) = delete;

  const std::string& name() const override { return name_; }
  void Start(Tell tell) override;
  void Stop() override;

  // Looks again at once, as what is to be looked up has changed.
  void LookNow();

 private:
  class Poller;

  const std::string name_;
  const std::shared_ptr<Poller> poller_;
  std::unique_ptr<LooseThread> thread_;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_POLLED_SOURCE_H_
