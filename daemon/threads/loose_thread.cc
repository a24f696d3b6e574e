#include "daemon/threads/loose_thread.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl {

struct LooseThread::Shared {
  absl::Mutex mutex;
  SteadyCondVar changed;
  bool ended ABSL_GUARDED_BY(mutex) = false;
};

LooseThread::LooseThread(std::function<void()> body)
    : shared_(std::make_shared<Shared>()),
      thread_([shared = shared_, body = std::move(body)]() mutable {
        body();
        body = nullptr;
        const absl::MutexLock lock(&shared->mutex);
        shared->ended = true;
        shared->changed.SignalAll();
      }) {}

void LooseThread::End(absl::Duration patience) {
  if (!thread_.joinable()) return;
  const absl::Time limit = SteadyNow() + patience;
  bool ended = false;
  {
    const absl::MutexLock lock(&shared_->mutex);
    while (!shared_->ended && SteadyNow() < limit) {
      shared_->changed.WaitFor(&shared_->mutex, limit - SteadyNow());
    }
    ended = shared_->ended;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace dfl
