#include "daemon/control/member_asks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/control/member_proto.h"
#include "daemon/control/member_selection.h"
#include "daemon/threads/steady_cond_var.h"
#include "proto/grpc_status.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

absl::Status GoingDown() {
  return absl::UnavailableError("the daemon is going down");
}

absl::Duration AskTimeout(double seconds) {
  if (!(seconds > 0)) return absl::Seconds(5);
  return absl::Seconds(std::clamp(seconds, 0.1, 60.0));
}

// Why a member that is gone is not asked.
absl::Status Gone(const MemberInfo& member) {
  const std::string ago =
      absl::FormatDuration(absl::Trunc(member.in_state, absl::Seconds(1)));
  return absl::UnavailableError(
      member.state == MemberState::kLeft
          ? absl::StrCat("it left ", ago, " ago")
          : absl::StrCat("it is dead: it has answered nobody for ", ago));
}

// What `node` answered, `travel` after it was asked.
absl::Status Read(const std::string& answer, const NodeId& node,
                  absl::Duration travel, pb::AskMembersResponse& out) {
  pb::MemberReport report;
  if (!report.ParseFromString(answer)) {
    return absl::InternalError(
        "its answer cannot be read; is it of a version that does not fit?");
  }
  if (report.status().node().node() != node.name()) {
    return absl::InternalError("it answered with the status of another node");
  }
  const double age = report.age_seconds();
  out.set_age_seconds((std::isfinite(age) ? std::max(age, 0.0) : 0) +
                      absl::ToDoubleSeconds(travel));
  *out.mutable_status() = std::move(*report.mutable_status());
  return absl::OkStatus();
}

}  // namespace

// What streams share, for as long as any of them lives.
struct MemberAsks::State {
  State(Backend& b, Timers& t, int max)
      : backend(b), timers(t), max_streams(max) {}

  Backend& backend;
  Timers& timers;
  const int max_streams;
  absl::Mutex mutex;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  std::set<std::shared_ptr<Stream>> streams ABSL_GUARDED_BY(mutex);
};

// One caller. Whoever sets `writing_` owns `response_` until OnWriteDone;
// whoever sets `ended_` calls Finish, and then no write is in flight.
class MemberAsks::Stream : public AskReactor {
 public:
  Stream(std::shared_ptr<State> state, std::vector<MemberInfo> members,
         absl::Duration within, std::function<absl::Status()> allowed)
      : state_(std::move(state)),
        members_(std::move(members)),
        within_(within),
        allowed_(std::move(allowed)) {}

  // After it is among the state's.
  void Begin(const std::shared_ptr<Stream>& self) {
    self_ = self;
    PumpSoon();
  }

  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value()) return;
      if (writing_) {
        ending_ = status;  // OnWriteDone finishes
        return;
      }
      ended_ = true;
    }
    Finish(ToGrpc(status));
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status status;
    {
      const absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (ok && !ending_.has_value()) {
        PumpSoon();
        return;
      }
      ended_ = true;
      status = ending_.value_or(absl::CancelledError("the caller left"));
    }
    Finish(ToGrpc(status));
  }

  void OnCancel() override { End(absl::CancelledError("the caller left")); }

  void OnDone() override {
    std::shared_ptr<Stream> self = self_.lock();
    const std::shared_ptr<State> state = state_;
    const absl::MutexLock lock(&state->mutex);
    state->streams.erase(self);
    // `self` goes with this scope, and the stream with it unless a task of the
    // timers or an answer holds it for a moment.
  }

 private:
  struct Answer {
    size_t member = 0;
    absl::Duration travel;
    absl::StatusOr<std::string> report;
  };

  void PumpSoon() {
    state_->timers.After(absl::ZeroDuration(), [weak = self_] {
      if (const std::shared_ptr<Stream> stream = weak.lock()) stream->Pump();
    });
  }

  // Timers' thread: asks whom it may, and writes one message if one is there
  // and none under way.
  void Pump() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (AskNext()) {
    }
    std::optional<Answer> answer;
    {
      const absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value() || writing_) return;
      if (ready_.empty() && (next_ < members_.size() || under_way_ > 0)) return;
    }
    const absl::Status allowed = allowed_();
    if (!allowed.ok()) return End(allowed);
    {
      const absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value() || writing_) return;
      if (ready_.empty()) {
        ended_ = true;
      } else {
        writing_ = true;
        answer = std::move(ready_.front());
        ready_.pop_front();
      }
    }
    if (!answer.has_value()) return Finish(grpc::Status::OK);
    Fill(*answer);
    StartWrite(&response_);
  }

  // False when nobody is to be asked now.
  bool AskNext() ABSL_LOCKS_EXCLUDED(mutex_) {
    size_t index = 0;
    {
      const absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value() || next_ == members_.size() ||
          under_way_ + static_cast<int>(ready_.size()) >= kAsksAtOnce) {
        return false;
      }
      index = next_++;
      if (!members_[index].present()) {
        ready_.push_back({index, absl::ZeroDuration(), Gone(members_[index])});
        return true;
      }
      ++under_way_;
    }
    state_->backend.AskMember(
        members_[index].node, within_,
        [weak = self_, index,
         asked = SteadyNow()](absl::StatusOr<std::string> report) {
          if (const std::shared_ptr<Stream> stream = weak.lock()) {
            stream->Put({index, SteadyNow() - asked, std::move(report)});
          }
        });
    return true;
  }

  // Any thread.
  void Put(Answer answer) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      --under_way_;
      ready_.push_back(std::move(answer));
    }
    PumpSoon();
  }

  // Makes the message. Timers' thread, while `writing_` is set.
  void Fill(const Answer& answer) {
    const MemberInfo& member = members_[answer.member];
    response_.Clear();
    ToProto(member, *response_.mutable_member());
    response_.set_asked(static_cast<int32_t>(members_.size()));
    absl::Status status = answer.report.status();
    if (status.ok()) {
      status = Read(*answer.report, member.node, answer.travel, response_);
    }
    if (status.ok()) return;
    pb::MemberFailure& failure = *response_.mutable_failure();
    failure.set_code(static_cast<int32_t>(status.code()));
    // What a member wrote may be cut, and must be text.
    failure.set_text(ToGrpc(status).error_message());
  }

  const std::shared_ptr<State> state_;
  const std::vector<MemberInfo> members_;
  const absl::Duration within_;
  const std::function<absl::Status()> allowed_;
  std::weak_ptr<Stream> self_;
  pb::AskMembersResponse response_;
  absl::Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // of members_, to be asked
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Answer> ready_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mutex_);
};

namespace {

class Refusal : public MemberAsks::AskReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

MemberAsks::MemberAsks(Backend& backend, Timers& timers, int max_streams)
    : state_(std::make_shared<State>(backend, timers, max_streams)) {}

MemberAsks::~MemberAsks() { Stop(); }

MemberAsks::AskReactor* MemberAsks::Open(
    const pb::AskMembersRequest& request,
    std::function<absl::Status()> allowed) {
  const auto selected =
      SelectMembers(state_->backend.Members().members, request.selection());
  if (!selected.ok()) return Refuse(selected.status());
  std::vector<MemberInfo> asked;
  for (const SelectedMember& chosen : *selected) {
    if (chosen.by_name || chosen.member.present()) {
      asked.push_back(chosen.member);
    }
  }
  auto stream = std::make_shared<Stream>(state_, std::move(asked),
                                         AskTimeout(request.timeout_seconds()),
                                         std::move(allowed));
  absl::Status refused;
  {
    const absl::MutexLock lock(&state_->mutex);
    if (state_->stopped) {
      refused = GoingDown();
    } else if (static_cast<int>(state_->streams.size()) >=
               state_->max_streams) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          state_->max_streams,
          " callers ask the members at once, and no more are allowed; try "
          "again in a moment"));
    } else {
      state_->streams.insert(stream);
    }
  }
  if (!refused.ok()) return Refuse(refused);
  stream->Begin(stream);
  return stream.get();
}

MemberAsks::AskReactor* MemberAsks::Refuse(const absl::Status& status) {
  return new Refusal(status);
}

void MemberAsks::Stop() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const absl::MutexLock lock(&state_->mutex);
    state_->stopped = true;
    streams.assign(state_->streams.begin(), state_->streams.end());
  }
  for (const auto& stream : streams) stream->End(GoingDown());
}

}  // namespace dfl::control
