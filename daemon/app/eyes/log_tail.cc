#include "daemon/app/eyes/log_tail.h"

#include <algorithm>
#include <utility>

namespace dfl::app {

void LogTail::Add(control::LogLine line) {
  const absl::MutexLock lock(&mutex_);
  line.id = ++last_;
  ++counts_.at(static_cast<size_t>(line.level) - 1);
  lines_.push_back(std::move(line));
  if (lines_.size() > kLines) lines_.pop_front();
}

control::LogPart LogTail::Read(const control::LogQuery& query) const {
  control::LogPart part;
  const absl::MutexLock lock(&mutex_);
  const int64_t oldest = last_ - static_cast<int64_t>(lines_.size()) + 1;
  part.forgotten = std::max<int64_t>(0, oldest - 1 - query.after);
  for (auto line = lines_.rbegin();
       line != lines_.rend() && line->id > query.after; ++line) {
    if (static_cast<int64_t>(part.lines.size()) == query.limit) break;
    if (line->level >= query.level) part.lines.push_back(*line);
  }
  std::reverse(part.lines.begin(), part.lines.end());
  return part;
}

std::array<int64_t, 4> LogTail::Counts() const {
  const absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace dfl::app
