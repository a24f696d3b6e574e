#include "daemon/exchange/stream.h"

namespace dfl::exchange {
namespace {

// Read and not yet taken in by the loop; beyond it reading pauses.
constexpr int64_t kInboxBytes = 4 << 20;

}  // namespace

bool SendBudget::Reserve(int64_t size, StreamKind kind) {
  absl::MutexLock lock(&mutex_);
  const int64_t bound = kind == StreamKind::kControl ? 2 * max_ : max_;
  if (queued_ + size > bound) {
    refused_ = true;
    return false;
  }
  queued_ += size;
  return true;
}

bool SendBudget::Release(int64_t size) {
  absl::MutexLock lock(&mutex_);
  queued_ -= size;
  if (!refused_ || queued_ >= max_ / 2) return false;
  refused_ = false;
  return true;
}

bool Stream::PinLocked() {
  if (ended_) return false;
  ++pins_;
  return true;
}

void Stream::Unpin() {
  absl::Status status;
  Ending ending;
  {
    absl::MutexLock lock(&mutex_);
    --pins_;
    if (!ended_ || pins_ > 0 || end_called_) return;
    end_called_ = true;
    status = end_status_;
    ending = ending_;
  }
  call_->End(status, ending);
}

void Stream::End(const absl::Status& status, Ending ending, bool mute) {
  std::deque<Queued> dropped;
  std::deque<Event> unwanted;
  {
    absl::MutexLock lock(&mutex_);
    if (mute) {
      muted_ = true;
      unwanted.swap(inbox_);
    }
    if (ended_) return;
    ended_ = true;
    dropped.swap(queue_);
    end_status_ = status;
    // A write that the peer does not take would hold up the status for ever.
    if (ending == Ending::kStatus && writing_) ending = Ending::kCancel;
    ending_ = ending;
    if (pins_ > 0) return;  // Unpin goes on
    end_called_ = true;
  }
  call_->End(status, ending);
}

void Stream::Stop(const absl::Status& reason) {
  End(reason, Ending::kStatus, /*mute=*/true);
}

// Out.

bool Stream::NextWriteLocked(StreamMessage* message) {
  if (writing_ || queue_.empty() || !PinLocked()) return false;
  writing_ = true;
  writing_size_ = queue_.front().size;
  *message = std::move(queue_.front().message);
  queue_.pop_front();
  return true;
}

void Stream::Enqueue(Queued queued) {
  StreamMessage next;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    queue_.push_back(std::move(queued));
    if (!NextWriteLocked(&next)) return;
  }
  call_->Write(std::move(next));
  Unpin();
}

void Stream::SendHello(pb::Hello hello) {
  Enqueue(Queued{std::move(hello), 0});
}

void Stream::SendFrame(ports::Frame frame, int64_t size) {
  Enqueue(Queued{std::move(frame), size});
}

void Stream::WriteDone(bool ok) {
  StreamMessage next;
  bool write = false;
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    const int64_t size = writing_size_;
    writing_size_ = 0;
    // When a write fails the link is over, and reading says so.
    if (ok) {
      if (budget_ != nullptr && budget_->Release(size)) {
        wake = PushLocked(Writable());
      }
      write = NextWriteLocked(&next);
    }
  }
  if (write) {
    call_->Write(std::move(next));
    Unpin();
  }
  if (wake) wake_();
}

// In.

bool Stream::NextReadLocked() {
  if (reading_ || read_ended_ || !open_ || unread_bytes_ >= kInboxBytes ||
      !PinLocked()) {
    return false;
  }
  reading_ = true;
  return true;
}

void Stream::ReadHello() {
  {
    absl::MutexLock lock(&mutex_);
    if (!PinLocked()) return;
    reading_ = true;
  }
  call_->Read();
  Unpin();
}

void Stream::OpenUp(std::shared_ptr<SendBudget> budget) {
  {
    absl::MutexLock lock(&mutex_);
    budget_ = std::move(budget);
    open_ = true;
    if (!NextReadLocked()) return;
  }
  call_->Read();
  Unpin();
}

bool Stream::PushLocked(Event event) {
  if (muted_) return false;
  inbox_.push_back(std::move(event));
  if (woken_) return false;
  woken_ = true;
  return true;
}

void Stream::ReadDone(Event event, int64_t bytes) {
  bool wake;
  bool read;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (!muted_) {
      inbox_bytes_ += bytes;
      unread_bytes_ += bytes;
    }
    wake = PushLocked(std::move(event));
    read = NextReadLocked();
  }
  if (read) {
    call_->Read();
    Unpin();
  }
  if (wake) wake_();
}

void Stream::ReadEnded(bool closed, const absl::Status& reason) {
  StopReading(closed, reason, Ending::kDone);
}

void Stream::ReadRefused(const absl::Status& reason) {
  StopReading(/*closed=*/true, reason, Ending::kStatus);
}

void Stream::StopReading(bool closed, const absl::Status& reason,
                         Ending ending) {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    read_ended_ = true;
    if (closed) wake = PushLocked(Closed{reason});
  }
  End(reason, ending, /*mute=*/false);
  if (wake) wake_();
}

void Stream::CallEnded(const absl::Status& reason) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    wake = PushLocked(Closed{reason});
  }
  if (wake) wake_();
}

Stream::Batch Stream::Take() {
  Batch batch;
  absl::MutexLock lock(&mutex_);
  woken_ = false;
  batch.events.swap(inbox_);
  batch.bytes = inbox_bytes_;
  inbox_bytes_ = 0;
  return batch;
}

void Stream::Consumed(const Batch& batch) {
  {
    absl::MutexLock lock(&mutex_);
    unread_bytes_ -= batch.bytes;
    if (!NextReadLocked()) return;
  }
  call_->Read();
  Unpin();
}

}  // namespace dfl::exchange
