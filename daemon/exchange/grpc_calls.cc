#include "daemon/exchange/grpc_calls.h"

#include <vector>

namespace dfl::exchange {

absl::Status CallRegistry::Add(std::shared_ptr<Stream> stream) {
  absl::MutexLock lock(&mutex_);
  if (closing_) return absl::UnavailableError("the node is shutting down");
  if (static_cast<int64_t>(streams_.size()) >= max_calls_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the node has ", streams_.size(),
                     " streams open; no more are accepted"));
  }
  const StreamId id = stream->id();
  streams_.emplace(id, std::move(stream));
  return absl::OkStatus();
}

void CallRegistry::Remove(StreamId id) {
  std::shared_ptr<Stream> removed;  // dies after the lock
  absl::MutexLock lock(&mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  removed = std::move(found->second);
  streams_.erase(found);
}

void CallRegistry::Shutdown() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (const auto& [id, stream] : streams_) streams.push_back(stream);
  }
  for (const auto& stream : streams) {
    stream->Stop(absl::UnavailableError("the node is shutting down"));
  }
}

void CallRegistry::WaitUntilEmpty() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CallRegistry::Empty));
}

}  // namespace dfl::exchange
