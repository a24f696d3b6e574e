// One gRPC stream of a link, between two sides. The node's loop queues messages
// and takes received ones. gRPC's threads write, read and wake the loop. Both
// work under one short lock, which is never held during a call to the other
// side.
//
//   loop --Send--> queue --Call::Write--> gRPC        (one write in flight)
//   loop <--Take-- inbox <--ReadDone----- gRPC        (one read in flight)
//
// Back-pressure reaches the sender: a full inbox stops reading, HTTP/2's flow
// control then stops the peer's writing, and the peer's queue fills.
#ifndef DFL_EXCHANGE_STREAM_H_
#define DFL_EXCHANGE_STREAM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/ports/frames.h"

namespace dfl::exchange {

using StreamId = uint64_t;

enum class StreamKind { kControl, kBulk };

// Bytes queued on a link, both streams together. Thread-safe.
class SendBudget {
 public:
  explicit SendBudget(int64_t max_queued_bytes) : max_(max_queued_bytes) {}

  // Returns false if `size` more bytes would exceed the bound (twice the bound
  // for control frames). The next Release that brings the queue below half of
  // it then returns true.
  bool Reserve(int64_t size, StreamKind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the caller must report that there is room again.
  bool Release(int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t queued() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return queued_;
  }

 private:
  const int64_t max_;
  mutable absl::Mutex mutex_;
  int64_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
};

// null: nothing.
inline int64_t QueuedIn(const std::shared_ptr<SendBudget>& budget) {
  return budget == nullptr ? 0 : budget->queued();
}

// In PEM form, as the peer showed them in the TLS handshake; both empty in
// plain text.
struct PeerCertificates {
  std::string leaf;
  std::string chain;
};

// The first message of a peer, and who says it.
struct Greeting {
  pb::Hello hello;
  PeerCertificates certificates;
};

using StreamMessage = std::variant<pb::Hello, ports::Frame>;

// How a call ends.
enum class Ending {
  kStatus,  // a listener sends its status; a dialler can only cancel
  kCancel,  // at once, whatever is still to be written
  kDone,    // the other end is gone already
};

// The gRPC side (grpc_calls.h). Outlives Stream's use of it: it dies only some
// time after End.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Read() = 0;
  virtual void Write(StreamMessage message) = 0;
  // Called once. No Read or Write follows.
  virtual void End(const absl::Status& status, Ending ending) = 0;
};

class Stream {
 public:
  // What the loop takes out, in order of arrival.
  struct Writable {};
  struct Closed {
    absl::Status reason;
  };
  using Event = std::variant<Greeting, ports::Frame, Writable, Closed>;
  struct Batch {
    std::deque<Event> events;
    int64_t bytes = 0;
  };

  // `wake` makes the loop call Take; any thread calls it.
  Stream(StreamId id, StreamKind kind, Call* call, std::function<void()> wake)
      : id_(id), kind_(kind), call_(call), wake_(std::move(wake)) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamId id() const { return id_; }
  StreamKind kind() const { return kind_; }

  // The loop's side.

  // Reads the first message, a Hello. No other message is read before OpenUp.
  void ReadHello() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendHello(pb::Hello hello) ABSL_LOCKS_EXCLUDED(mutex_);
  // The link is up: frames may flow. `budget` is the link's.
  void OpenUp(std::shared_ptr<SendBudget> budget) ABSL_LOCKS_EXCLUDED(mutex_);
  // `size` was reserved in the budget.
  void SendFrame(ports::Frame frame, int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  Batch Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // The loop has processed a batch, so there is room to read more.
  void Consumed(const Batch& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the call; the loop gets no more events of it. `reason` is sent to the
  // peer if we are the listener and nothing is being written. Idempotent; any
  // thread.
  void Stop(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // gRPC's side.

  void ReadDone(Event event, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing more will be read. With `closed` the stream ends for the loop too;
  // otherwise the call reports the reason later, by CallEnded.
  void ReadEnded(bool closed, const absl::Status& reason)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A received message breaks the protocol. The call ends with `reason`, which
  // is sent to the peer if we are the listener.
  void ReadRefused(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void CallEnded(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Queued {
    StreamMessage message;
    int64_t size = 0;
  };

  // The call is not ended between Pin and Unpin, so it is alive.
  bool PinLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unpin() ABSL_LOCKS_EXCLUDED(mutex_);
  void Enqueue(Queued queued) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the next message to write, unless one is in flight. Pins the call if
  // it returns true.
  bool NextWriteLocked(StreamMessage* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether to read the next message. Pins the call if it returns true.
  bool NextReadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether to wake the loop.
  bool PushLocked(Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopReading(bool closed, const absl::Status& reason, Ending ending)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& status, Ending ending, bool mute)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const StreamId id_;
  const StreamKind kind_;
  Call* const call_;
  const std::function<void()> wake_;

  absl::Mutex mutex_;
  // Out.
  std::shared_ptr<SendBudget> budget_ ABSL_GUARDED_BY(mutex_);
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t writing_size_ ABSL_GUARDED_BY(mutex_) = 0;
  // In.
  std::deque<Event> inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t inbox_bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // in inbox_
  int64_t unread_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // and not yet consumed
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool muted_ ABSL_GUARDED_BY(mutex_) = false;
  // The end.
  int pins_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_called_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);
  Ending ending_ ABSL_GUARDED_BY(mutex_) = Ending::kStatus;
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_STREAM_H_
