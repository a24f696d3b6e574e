// Queries: asks a member, wherever it is, a question of one topic, and answers
// those of others.
//
// An answer comes in parts, each of which is asked for when the one before it
// is there, and once more when it does not come. The answering side keeps an
// answer of several parts for a while, so that all parts are of one answer; it
// keeps few, the newest. What it sends counts against the allowance of the peer
// that the question came from, see RouteAllowance.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_QUERIES_H_
#define DFL_RUNTIME_MEMBERSHIP_QUERIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/membership/routes.h"

namespace dfl::runtime {

class Queries {
 public:
  // The answer to a question of one topic: at most ports::kMaxAnswerBytes.
  using Answer = std::function<absl::StatusOr<std::string>()>;
  using Done = std::function<void(absl::StatusOr<std::string>)>;

  // Questions of this node that are under way, and that wait for that.
  static constexpr size_t kMostUnderWay = 64;
  static constexpr size_t kMostWaiting = 4096;
  // Answers that are kept for their other parts.
  static constexpr size_t kMostKept = 16;
  static constexpr absl::Duration kKeptFor = absl::Seconds(30);

  // `is_known`: whether a member of this name is known. All must outlive it.
  Queries(NodeId self, ports::Loop& loop, Routes& routes,
          std::function<bool(const NodeId&)> is_known);
  // Calls no `done` any more.
  ~Queries();
  Queries(const Queries&) = delete;
  Queries& operator=(const Queries&) = delete;

  // As Membership's.
  void SetAnswer(int32_t topic, Answer answer);
  // As Membership's. RESOURCE_EXHAUSTED beyond kMostWaiting. `within` counts
  // from this call.
  void Ask(const NodeId& target, int32_t topic, absl::Duration within,
           Done done);

  // Frames for this node; `from` is the linked peer that they came from.
  void OnFrame(const NodeId& from, const ports::QueryFrame& frame);
  void OnFrame(ports::QueryPartFrame frame);

  size_t under_way() const { return asked_.size() - waiting_.size(); }
  size_t kept() const { return kept_.size(); }

 private:
  struct Asked {
    NodeId target;
    int32_t topic = 0;
    absl::Duration within;
    Done done;
    std::string answer;     // as far as it has come
    bool repeated = false;  // the question for the next part
    ports::TimerId repeat = 0;
    ports::TimerId end = 0;
  };
  struct Kept {
    NodeId origin;
    uint64_t number = 0;
    std::string answer;
    absl::Time until;
  };

  absl::StatusOr<std::string> AnswerTo(int32_t topic) const;
  // What is sent for `frame`; keeps the answer if there is more of it.
  ports::QueryPartFrame PartFor(const ports::QueryFrame& frame);
  void SendPart(const NodeId& from, ports::QueryPartFrame part);
  // Asks for the next part.
  absl::Status AskPart(uint64_t number, Asked& asked);
  void Repeat(uint64_t number);
  // Starts questions that wait while there is room.
  void StartWaiting();
  // Ends a question, and calls its `done` from the loop.
  void Finish(uint64_t number, absl::StatusOr<std::string> result);

  const NodeId self_;
  ports::Loop& loop_;
  Routes& routes_;
  const std::function<bool(const NodeId&)> is_known_;
  std::map<int32_t, Answer> answers_;
  std::map<uint64_t, Asked> asked_;
  std::deque<uint64_t> waiting_;  // of asked_, in their order
  std::deque<Kept> kept_;         // the oldest first
  uint64_t last_number_ = 0;
  // False: tasks that are posted find nothing any more.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_QUERIES_H_
