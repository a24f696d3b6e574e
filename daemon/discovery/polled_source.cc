#include "daemon/discovery/polled_source.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/threads/loose_thread.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::discovery {
namespace {

// A look that takes longer than this when the source stops is left behind.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

}  // namespace

// Shared with the thread, which may be left behind in a look.
class PolledSource::Poller {
 public:
  Poller(Look look, PollPeriods periods)
      : look_(std::move(look)), periods_(periods) {}

  // The thread's body.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    bool more = true;
    while (more) more = TellAndWait(look_());
  }

  // False: it was stopped before.
  bool SetTell(Tell tell) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    tell_ = std::move(tell);
    return !stopping_;
  }

  void LookNow() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    look_now_ = true;
    changed_.SignalAll();
  }

  // Waits for a call of `tell` that is under way.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }

 private:
  // False: it was stopped.
  bool TellAndWait(const Findings& findings) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    tell_(findings);
    const absl::Time next =
        SteadyNow() +
        (findings.trouble.empty() ? periods_.normal : periods_.troubled);
    while (!stopping_ && !look_now_ && SteadyNow() < next) {
      changed_.WaitFor(&mutex_, next - SteadyNow());
    }
    look_now_ = false;
    return !stopping_;
  }

  const Look look_;
  const PollPeriods periods_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  Tell tell_ ABSL_GUARDED_BY(mutex_);
  bool look_now_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

PolledSource::PolledSource(std::string name, Look look, PollPeriods periods)
    : name_(std::move(name)),
      poller_(std::make_shared<Poller>(std::move(look), periods)) {}

PolledSource::~PolledSource() { Stop(); }

void PolledSource::Start(Tell tell) {
  if (!poller_->SetTell(std::move(tell))) return;
  thread_ =
      std::make_unique<LooseThread>([poller = poller_] { poller->Run(); });
}

void PolledSource::Stop() {
  poller_->Stop();
  if (thread_) thread_->End(kPatience);
}

void PolledSource::LookNow() { poller_->LookNow(); }

}  // namespace dfl::discovery
