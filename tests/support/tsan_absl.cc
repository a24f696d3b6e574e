// Tells ThreadSanitizer what absl's locks order.
//
// The system's libabsl is not instrumented: its atomics are invisible, so all
// that a Mutex guards would be reported as a race. These definitions stand in
// front of the library's, call them, and say who comes after whom. gRPC's calls
// of the same functions come by here too. Only linked under
// DFL_SANITIZE=thread.
//
// Only order is told, not ownership: lock inversions are absl's own to find.
// Conditions are evaluated inside the library, by whichever thread holds the
// lock there, before or after what is told here; their accesses are left out.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/base/config.h"
#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

extern "C" {
// Of the runtime; in none of its headers.
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace {

#define DFL_TEXT_OF(x) #x
#define DFL_TEXT(x) DFL_TEXT_OF(x)

// The library's function behind ours. `rest` is its mangled name after absl's
// namespaces; `kind` is _ZNK for a const member.
template <typename F>
F* Real(const char* rest, const char* kind = "_ZN") {
  const std::string space = DFL_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string name =
      kind + ("4absl" + std::to_string(space.size())) + space + rest;
  void* found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_absl: the library has no %s\n", name.c_str());
    std::abort();
  }
  return reinterpret_cast<F*>(found);
}

// Accesses in its scope are not looked at.
class Unseen {
 public:
  Unseen() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

// HasBeenNotified() is inline and reads the flag behind the mutex.
void* Flag(const absl::Notification* notification) {
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) +
         sizeof(absl::Mutex);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

using synchronization_internal::KernelTimeout;

void Mutex::Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<void(Mutex*)>("5Mutex4LockEv");
  {
    const Unseen unseen;
    real(this);
  }
  __tsan_acquire(this);
}

void Mutex::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<void(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  const Unseen unseen;
  real(this);
}

bool Mutex::TryLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<bool(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = real(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<void(Mutex*)>("5Mutex10ReaderLockEv");
  {
    const Unseen unseen;
    real(this);
  }
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  const Unseen unseen;
  real(this);
}

// Behind every LockWhen.
bool Mutex::LockSlowWithDeadline(MuHow how, const Condition* condition,
                                 KernelTimeout timeout,
                                 int flags) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real =
      Real<bool(Mutex*, MuHow, const Condition*, KernelTimeout, int)>(
          "5Mutex20LockSlowWithDeadlineEPKNS0_6MuHowSEPKNS0_9ConditionENS0_24"
          "synchronization_internal13KernelTimeoutEi");
  bool met;
  {
    const Unseen unseen;
    met = real(this, how, condition, timeout, flags);
  }
  __tsan_acquire(this);
  return met;
}

// Behind every Await.
bool Mutex::AwaitCommon(const Condition& condition,
                        KernelTimeout timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<bool(Mutex*, const Condition&, KernelTimeout)>(
      "5Mutex11AwaitCommonERKNS0_9ConditionENS0_24synchronization_internal13"
      "KernelTimeoutE");
  __tsan_release(this);
  bool met;
  {
    const Unseen unseen;
    met = real(this, condition, timeout);
  }
  __tsan_acquire(this);
  return met;
}

// Behind every Wait of a CondVar.
bool CondVar::WaitCommon(Mutex* mutex,
                         KernelTimeout timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const real = Real<bool(CondVar*, Mutex*, KernelTimeout)>(
      "7CondVar10WaitCommonEPNS0_5MutexENS0_24synchronization_internal13"
      "KernelTimeoutE");
  __tsan_release(mutex);
  bool expired;
  {
    const Unseen unseen;
    expired = real(this, mutex, timeout);
  }
  __tsan_acquire(mutex);
  return expired;
}

void Notification::Notify() {
  static auto* const real =
      Real<void(Notification*)>("12Notification6NotifyEv");
  __tsan_release(Flag(this));
  real(this);
}

void Notification::WaitForNotification() const {
  static auto* const real = Real<void(const Notification*)>(
      "12Notification19WaitForNotificationEv", "_ZNK");
  real(this);
  __tsan_acquire(Flag(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const real = Real<bool(const Notification*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", "_ZNK");
  const bool notified = real(this, timeout);
  if (notified) __tsan_acquire(Flag(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const real = Real<bool(const Notification*, Time)>(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE", "_ZNK");
  const bool notified = real(this, deadline);
  if (notified) __tsan_acquire(Flag(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
