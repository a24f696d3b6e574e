#include "daemon/discovery/mdns.h"

#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "avahi-common/simple-watch.h"
#include "daemon/discovery/responder.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::discovery {
namespace {

// A stack that has failed is given up; after this another is tried.
constexpr absl::Duration kPause = absl::Seconds(5);
constexpr int kIterationMillis = 1000;
// Saying goodbye takes a moment; a call on the bus that hangs is left behind.
constexpr absl::Duration kPatience = absl::Seconds(1);

struct PollDeleter {
  void operator()(AvahiSimplePoll* poll) const { avahi_simple_poll_free(poll); }
};
using Poll = std::unique_ptr<AvahiSimplePoll, PollDeleter>;

std::string InterfaceName(int index) {
  char name[IF_NAMESIZE] = {};
  return if_indextoname(static_cast<unsigned>(index), name) == nullptr ? ""
                                                                       : name;
}

}  // namespace

// Shared with the thread, which may be left behind in a call on the bus.
class MdnsSource::Browser {
 public:
  Browser(MdnsService service,
          std::function<void(bool, const std::string&)> note)
      : note_(std::move(note)), service_(std::move(service)) {}

  // The thread's body.
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (!stopping()) {
      const absl::Status failed = UseOneStack();
      heard_.clear();
      // What was told before is told on while the next one asks again.
      if (failed.ok()) continue;
      Tell(std::string(failed.message()));
      dirty_ = true;  // the next one may find nobody, and then all is well
      Pause();
    }
  }

  // False: it was stopped before.
  bool SetTell(Source::Tell tell) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    tell_ = std::move(tell);
    return !stopping_;
  }

  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
    WakeUp();
  }

  void Announce(std::vector<std::string> addresses)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    if (addresses == service_.addresses) return;
    service_.addresses = std::move(addresses);
    anew_ = true;
    WakeUp();
  }

 private:
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return stopping_;
  }

  void WakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    changed_.SignalAll();
    if (poll_ != nullptr) avahi_simple_poll_wakeup(poll_);
  }

  void Pause() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time until = SteadyNow() + kPause;
    const absl::MutexLock lock(&mutex_);
    while (!stopping_ && SteadyNow() < until) {
      changed_.WaitFor(&mutex_, until - SteadyNow());
    }
  }

  // What is to be announced now, with the poll that is woken up from here on.
  MdnsService TakeService(AvahiSimplePoll* poll) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    poll_ = poll;
    anew_ = false;
    return service_;
  }

  bool EndsStack() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return stopping_ || anew_;
  }

  // Opens Avahi's daemon, or the library.
  absl::StatusOr<std::unique_ptr<Responder>> Open(AvahiSimplePoll* poll,
                                                  const MdnsService& service) {
    ResponderOptions options;
    options.poll = avahi_simple_poll_get(poll);
    options.service = service;
    options.found = [this](const MdnsKey& key, std::vector<std::string> txt) {
      heard_[key] = std::move(txt);
      dirty_ = true;
    };
    options.gone = [this](const MdnsKey& key) {
      dirty_ = heard_.erase(key) > 0 || dirty_;
    };
    const std::string does =
        service.addresses.empty()
            ? "looks for others, and announces nothing,"
            : absl::StrCat("announces ", service.node, " and looks for others");
    auto daemon = ConnectToAvahi(options);
    if (daemon.ok()) {
      Note(
          absl::StrCat("mdns: ", does, " through this machine's Avahi daemon"));
      return daemon;
    }
    auto embedded = EmbedAvahi(std::move(options));
    if (embedded.ok()) {
      Note(absl::StrCat("mdns: ", does,
                        " in this process, as there is no "
                        "Avahi daemon (",
                        daemon.status().message(), ")"));
      return embedded;
    }
    return absl::UnavailableError(absl::StrCat(
        "no Avahi daemon answers (", daemon.status().message(),
        "), and in this process it fails, too: ", embedded.status().message()));
  }

  // One line a change; none once it stops, since who is told may be gone.
  void Note(std::string text) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (text == noted_) return;
    noted_ = std::move(text);
    const absl::MutexLock lock(&mutex_);
    if (!stopping_) note_(false, noted_);
  }

  // Returns when the source stops, what is announced changes (both OK), or the
  // stack fails.
  absl::Status UseOneStack() ABSL_LOCKS_EXCLUDED(mutex_) {
    const Poll poll(avahi_simple_poll_new());
    if (poll == nullptr) return absl::InternalError("no poll can be made");
    const MdnsService service = TakeService(poll.get());
    absl::Status state;
    {
      auto responder = Open(poll.get(), service);
      state = responder.status();
      absl::Time asked = SteadyNow();
      while (state.ok() && !EndsStack()) {
        if (dirty_) Tell("");
        if (avahi_simple_poll_iterate(poll.get(), kIterationMillis) < 0 &&
            errno != EINTR) {
          state = absl::InternalError("its sockets cannot be waited for");
        }
        if (SteadyNow() - asked > absl::Milliseconds(kIterationMillis)) {
          asked = SteadyNow();
          (*responder)->AskAgain();
        }
        if (state.ok()) state = (*responder)->state();
      }
    }
    const absl::MutexLock lock(&mutex_);
    poll_ = nullptr;
    return state;
  }

  void Tell(const std::string& trouble) ABSL_LOCKS_EXCLUDED(mutex_) {
    dirty_ = false;
    Findings findings;
    findings.trouble = trouble;
    const absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    for (const auto& [key, txt] : heard_) {
      for (std::string& address :
           CandidatesOf(txt, service_.cluster, service_.node,
                        InterfaceName(key.interface))) {
        findings.addresses.push_back(std::move(address));
      }
    }
    std::vector<std::string>& all = findings.addresses;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    tell_(std::move(findings));
  }

  const std::function<void(bool, const std::string&)> note_;

  // Of the thread alone.
  std::map<MdnsKey, std::vector<std::string>> heard_;  // TXT records
  bool dirty_ = true;  // what is there has not been told yet
  std::string noted_;

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  MdnsService service_ ABSL_GUARDED_BY(mutex_);
  Source::Tell tell_ ABSL_GUARDED_BY(mutex_);
  AvahiSimplePoll* poll_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool anew_ ABSL_GUARDED_BY(mutex_) = false;
};

MdnsSource::MdnsSource(
    MdnsService service,
    std::function<void(bool warning, const std::string& text)> note)
    : browser_(std::make_shared<Browser>(std::move(service), std::move(note))) {
}

MdnsSource::~MdnsSource() { Stop(); }

void MdnsSource::Start(Tell tell) {
  if (!browser_->SetTell(std::move(tell))) return;
  thread_ =
      std::make_unique<LooseThread>([browser = browser_] { browser->Run(); });
}

void MdnsSource::Stop() {
  browser_->Stop();
  if (thread_) thread_->End(kPatience);
}

void MdnsSource::Announce(std::vector<std::string> addresses) {
  browser_->Announce(std::move(addresses));
}

}  // namespace dfl::discovery
