#include "daemon/runtime/membership/queries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ports/frames.h"

namespace dfl::runtime {

namespace {

// A part that does not come is asked for again after this share of the time
// that the whole answer has.
constexpr int kRepeatShare = 4;

}  // namespace

Queries::Queries(NodeId self, ports::Loop& loop, Routes& routes,
                 std::function<bool(const NodeId&)> is_known)
    : self_(std::move(self)),
      loop_(loop),
      routes_(routes),
      is_known_(std::move(is_known)) {}

Queries::~Queries() {
  *open_ = false;
  for (const auto& [number, asked] : asked_) {
    loop_.Cancel(asked.repeat);
    loop_.Cancel(asked.end);
  }
}

// ---------------------------------------------------------------- answering --

void Queries::SetAnswer(int32_t topic, Answer answer) {
  answers_[topic] = std::move(answer);
}

absl::StatusOr<std::string> Queries::AnswerTo(int32_t topic) const {
  const auto found = answers_.find(topic);
  if (found == answers_.end() || found->second == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(self_.name(), " answers no questions of topic ", topic));
  }
  absl::StatusOr<std::string> answer = found->second();
  if (answer.ok() &&
      static_cast<int64_t>(answer->size()) > ports::kMaxAnswerBytes) {
    return absl::UnavailableError(
        absl::StrCat("the answer has ", answer->size(), " bytes; at most ",
                     ports::kMaxAnswerBytes, " are sent"));
  }
  return answer;
}

ports::QueryPartFrame Queries::PartFor(const ports::QueryFrame& frame) {
  ports::QueryPartFrame part;
  part.route = {.origin = self_, .target = frame.route.origin};
  part.number = frame.number;
  while (!kept_.empty() && kept_.front().until < loop_.Now()) {
    kept_.pop_front();
  }
  auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return k.number == frame.number && k.origin == frame.route.origin;
  });
  if (kept == kept_.end()) {
    absl::StatusOr<std::string> answer =
        frame.offset == 0 ? AnswerTo(frame.topic)
                          : absl::UnavailableError(
                                "the answer is not kept any more; ask again");
    if (!answer.ok()) {
      part.error = std::string(
          answer.status().message().substr(0, ports::kMaxTextBytes));
      if (part.error.empty()) part.error = "no answer";
      return part;
    }
    if (kept_.size() >= kMostKept) kept_.pop_front();
    kept_.push_back(Kept{.origin = frame.route.origin,
                         .number = frame.number,
                         .answer = *std::move(answer),
                         .until = loop_.Now() + kKeptFor});
    kept = std::prev(kept_.end());
  }
  const auto size = static_cast<int64_t>(kept->answer.size());
  part.total_bytes = size;
  part.offset = std::min(frame.offset, size);
  part.data = kept->answer.substr(static_cast<size_t>(part.offset),
                                  ports::kMaxAnswerPartBytes);
  // Nothing more is asked of one that fits into a part.
  if (size <= ports::kMaxAnswerPartBytes) kept_.erase(kept);
  return part;
}

void Queries::SendPart(const NodeId& from, ports::QueryPartFrame part) {
  if (!routes_.Spend(from, ports::EncodedSize(ports::Frame(part)))) return;
  (void)routes_.SendBack(from, std::move(part));
}

void Queries::OnFrame(const NodeId& from, const ports::QueryFrame& frame) {
  SendPart(from, PartFor(frame));
}

// ------------------------------------------------------------------- asking --

void Queries::Ask(const NodeId& target, int32_t topic, absl::Duration within,
                  Done done) {
  const uint64_t number = ++last_number_;
  Asked& asked = asked_[number];
  asked.target = target;
  asked.topic = topic;
  asked.within = within;
  asked.done = std::move(done);
  if (target == self_) {
    Finish(number, AnswerTo(topic));
    return;
  }
  if (!is_known_(target)) {
    Finish(number, absl::NotFoundError(
                       absl::StrCat("no member ", target.name(), " is known")));
    return;
  }
  if (waiting_.size() >= kMostWaiting) {
    Finish(number,
           absl::ResourceExhaustedError(absl::StrCat(
               waiting_.size(), " questions wait already; ask again later")));
    return;
  }
  asked.end = loop_.After(within, [this, number] {
    const auto it = asked_.find(number);
    if (it == asked_.end()) return;
    Finish(number, absl::DeadlineExceededError(absl::StrCat(
                       it->second.target.name(), " did not answer within ",
                       absl::FormatDuration(it->second.within))));
  });
  waiting_.push_back(number);
  StartWaiting();
}

void Queries::StartWaiting() {
  while (!waiting_.empty() && under_way() < kMostUnderWay) {
    const uint64_t number = waiting_.front();
    waiting_.pop_front();
    absl::Status sent = AskPart(number, asked_.at(number));
    if (!sent.ok()) Finish(number, std::move(sent));
  }
}

absl::Status Queries::AskPart(uint64_t number, Asked& asked) {
  asked.repeated = false;
  loop_.Cancel(asked.repeat);
  asked.repeat = loop_.After(asked.within / kRepeatShare,
                             [this, number] { Repeat(number); });
  return routes_.Send(
      ports::QueryFrame{.route = {.origin = self_, .target = asked.target},
                        .number = number,
                        .topic = asked.topic,
                        .offset = static_cast<int64_t>(asked.answer.size())});
}

void Queries::Repeat(uint64_t number) {
  const auto it = asked_.find(number);
  if (it == asked_.end()) return;
  it->second.repeat = 0;
  if (it->second.repeated) return;
  // A way that is lost may be there again later; the end of its time tells.
  (void)AskPart(number, it->second);
  it->second.repeated = true;
}

void Queries::OnFrame(ports::QueryPartFrame frame) {
  const auto it = asked_.find(frame.number);
  if (it == asked_.end() || frame.route.origin != it->second.target) return;
  Asked& asked = it->second;
  if (!frame.error.empty()) {
    Finish(frame.number, absl::UnavailableError(frame.error));
    return;
  }
  if (frame.offset != static_cast<int64_t>(asked.answer.size())) {
    return;  // it came twice
  }
  asked.answer += frame.data;
  if (static_cast<int64_t>(asked.answer.size()) >= frame.total_bytes) {
    Finish(frame.number, std::move(asked.answer));
    return;
  }
  if (frame.data.empty()) {
    Finish(frame.number,
           absl::UnavailableError(absl::StrCat(
               asked.target.name(), " sent an empty part of its answer")));
    return;
  }
  if (absl::Status sent = AskPart(frame.number, asked); !sent.ok()) {
    Finish(frame.number, std::move(sent));
  }
}

void Queries::Finish(uint64_t number, absl::StatusOr<std::string> result) {
  const auto it = asked_.find(number);
  Asked asked = std::move(it->second);
  asked_.erase(it);
  std::erase(waiting_, number);  // it may have waited
  loop_.Cancel(asked.repeat);
  loop_.Cancel(asked.end);
  loop_.Post(
      [open = open_, done = std::move(asked.done), result = std::move(result)] {
        if (*open) done(result);
      });
  if (!waiting_.empty()) {
    loop_.Post([this, open = open_] {
      if (*open) StartWaiting();
    });
  }
}

}  // namespace dfl::runtime
