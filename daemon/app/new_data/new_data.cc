#include "daemon/app/new_data/new_data.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/new_data/data_watch.h"
#include "daemon/base/status_macros.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::app {
namespace {

// A file that takes longer to read than this when the daemon ends is left
// behind.
constexpr absl::Duration kPatience = absl::Milliseconds(500);
// Training goes first.
constexpr int kNiceness = 10;

using Done = std::function<void(absl::Status)>;

// Calls `done` once, also when nobody else gets to it.
class Verdict {
 public:
  explicit Verdict(Done done) : done_(std::move(done)) {}
  ~Verdict() {
    if (done_) done_(absl::CancelledError("the daemon is shutting down"));
  }
  Verdict(const Verdict&) = delete;
  Verdict& operator=(const Verdict&) = delete;

  void Tell(absl::Status status) {
    std::exchange(done_, nullptr)(std::move(status));
  }

 private:
  Done done_;
};

}  // namespace

// What the thread does. Shared with it, since it may be left behind.
class NewData::Looker : public std::enable_shared_from_this<Looker> {
 public:
  // Where it stands in the daemon.
  struct Hooks {
    // Whether files of so many bytes may be read beside those in use.
    std::function<absl::Status(int64_t bytes, int64_t in_use)> may_read;
    // Takes rows up, and then calls the function on any thread.
    std::function<void(std::shared_ptr<LearnerFactory>, Done)> take;
    std::function<void(bool warning, std::string text)> tell;
  };

  explicit Looker(NewDataOptions options)
      : options_(std::move(options)), watch_(options_.in_use) {}

  void SetHooks(Hooks hooks) ABSL_LOCKS_EXCLUDED(hooks_mutex_) {
    const absl::MutexLock lock(&hooks_mutex_);
    hooks_ = std::move(hooks);
  }

  // The thread's body.
  void Run() {
    pthread_setname_np(pthread_self(), "dfld-data");
    [[maybe_unused]] const int now = nice(kNiceness);
    absl::Duration pause = options_.interval;
    while (Rest(pause)) pause = Look();
  }

  // No hook is called afterwards.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_, hooks_mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    const absl::MutexLock lock(&hooks_mutex_);
    hooks_.reset();
  }

  std::string fault() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return fault_;
  }

 private:
  // False: it is over.
  bool Rest(absl::Duration pause) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time end = SteadyNow() + pause;
    const absl::MutexLock lock(&mutex_);
    while (!stopping_ && SteadyNow() < end) {
      changed_.WaitFor(&mutex_, end - SteadyNow());
    }
    return !stopping_;
  }

  // Returns how long to rest.
  absl::Duration Look() {
    const DataMarks found = options_.look();
    switch (watch_.Look(found)) {
      case DataWatch::Next::kAsTaken:
        SetFault("");
        return options_.interval;
      case DataWatch::Next::kRest:
        return options_.interval;
      case DataWatch::Next::kLookSoon:
        return options_.settle;
      case DataWatch::Next::kRead:
        break;
    }
    const std::optional<absl::Status> taken = TakeUp(found);
    if (!taken.has_value()) return options_.settle;
    if (taken->ok()) {
      watch_.SetTaken(found);
      SetFault("");
    } else {
      watch_.SetRefused(found);
      SetFault(
          absl::StrCat("its new data are not taken up: ",
                       absl::StrReplaceAll(taken->message(), {{"\n", "; "}})));
    }
    return options_.interval;
  }

  // Nullopt: the files have changed meanwhile, or it is over.
  std::optional<absl::Status> TakeUp(const DataMarks& found) {
    const absl::Status may = MayRead(found);
    if (!may.ok()) return may;
    absl::StatusOr<std::unique_ptr<LearnerFactory>> rows = options_.read();
    if (options_.look() != found) return std::nullopt;
    if (!rows.ok()) return rows.status();
    (void)(*rows)->Report();  // costs a pass over the rows, and is kept
    return Give(*std::move(rows));
  }

  absl::Status MayRead(const DataMarks& found)
      ABSL_LOCKS_EXCLUDED(hooks_mutex_) {
    const absl::MutexLock lock(&hooks_mutex_);
    if (!hooks_.has_value()) return absl::OkStatus();
    return hooks_->may_read(found.bytes, watch_.taken().bytes);
  }

  std::optional<absl::Status> Give(std::shared_ptr<LearnerFactory> rows)
      ABSL_LOCKS_EXCLUDED(mutex_, hooks_mutex_) {
    {
      const absl::MutexLock lock(&hooks_mutex_);
      if (!hooks_.has_value()) return std::nullopt;
      hooks_->take(std::move(rows),
                   [self = shared_from_this()](absl::Status status) {
                     const absl::MutexLock answer(&self->mutex_);
                     self->verdict_ = std::move(status);
                     self->changed_.SignalAll();
                   });
    }
    const absl::MutexLock lock(&mutex_);
    while (!stopping_ && !verdict_.has_value()) changed_.Wait(&mutex_);
    if (stopping_) return std::nullopt;
    return std::exchange(verdict_, std::nullopt);
  }

  // Tells it where it is news, and then has it in the status.
  void SetFault(const std::string& fault)
      ABSL_LOCKS_EXCLUDED(mutex_, hooks_mutex_) {
    if (fault == this->fault()) return;
    {
      const absl::MutexLock lock(&hooks_mutex_);
      if (!hooks_.has_value()) return;
      hooks_->tell(!fault.empty(),
                   fault.empty() ? "the data files are in order again" : fault);
    }
    const absl::MutexLock lock(&mutex_);
    fault_ = fault;
  }

  const NewDataOptions options_;
  DataWatch watch_;  // the thread's

  // Held while a hook is called; taken before mutex_.
  absl::Mutex hooks_mutex_;
  std::optional<Hooks> hooks_ ABSL_GUARDED_BY(hooks_mutex_);

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> verdict_ ABSL_GUARDED_BY(mutex_);
  std::string fault_ ABSL_GUARDED_BY(mutex_);
};

NewData::NewData(NewDataOptions options, RenewableLearners& learners,
                 EventLoop& loop, runtime::Membership* membership,
                 ports::EventSink& events)
    : interval_(options.interval),
      learners_(learners),
      loop_(loop),
      membership_(membership),
      events_(events),
      looker_(std::make_shared<Looker>(std::move(options))) {}

void NewData::Connect(PlanTaker& plans, Worker& setup) {
  if (interval_ <= absl::ZeroDuration()) return;
  Looker::Hooks hooks;
  hooks.may_read = [&plans](int64_t bytes, int64_t in_use) {
    return plans.learner().MayRead(bytes, in_use);
  };
  hooks.take = [this, &plans, &setup](std::shared_ptr<LearnerFactory> rows,
                                      Done done) {
    auto verdict = std::make_shared<Verdict>(std::move(done));
    setup.Run([this, &plans, rows = std::move(rows),
               verdict] { verdict->Tell(Take(plans, rows)); },
              [] {});
  };
  hooks.tell = [this](bool warning, std::string text) {
    Tell(warning, std::move(text));
  };
  looker_->SetHooks(std::move(hooks));
  thread_ =
      std::make_unique<LooseThread>([looker = looker_] { looker->Run(); });
}

void NewData::Disconnect() {
  looker_->Stop();
  if (thread_ != nullptr) thread_->End(kPatience);
}

std::string NewData::fault() const { return looker_->fault(); }

absl::Status NewData::Take(PlanTaker& plans,
                           std::shared_ptr<LearnerFactory> rows) {
  const control::DataReport before = learners_.Report();
  const control::DataReport report = rows->Report();
  DFL_RETURN_IF_ERROR(plans.TakeRows(*rows));
  learners_.Use(std::move(rows));
  for (const std::string& warning : report.warnings) {
    if (std::find(before.warnings.begin(), before.warnings.end(), warning) ==
        before.warnings.end()) {
      Tell(true, warning);
    }
  }
  // A node that has a plan says the rest at the boundary at which it begins to
  // train on them.
  if (plans.learner().built()) return absl::OkStatus();
  Tell(false, absl::StrCat(report.train_rows, " rows taken up (",
                           before.train_rows, " before)"));
  loop_.RunAndWait([&] {
    if (membership_ == nullptr) return;
    ports::MemberFacts facts = membership_->facts();
    facts.rows = report.train_rows;
    membership_->SetFacts(std::move(facts));
  });
  return absl::OkStatus();
}

void NewData::Tell(bool warning, std::string text) {
  loop_.Post([&events = events_, warning, text = std::move(text)] {
    events.Report(ports::DataNote{warning, text});
  });
}

}  // namespace dfl::app
