#include "daemon/exchange/grpc_calls.h"

#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>
#include <vector>

namespace dfl::exchange {
namespace internal {
namespace {

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  if (values.empty()) return "";
  return {values.front().data(), values.front().size()};
}

}  // namespace

PeerCertificates CertificatesOf(const grpc::AuthContext& context) {
  return {Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME),
          Property(context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME)};
}

}  // namespace internal

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

std::shared_ptr<Stream> DialControl(
    const std::shared_ptr<CallRegistry>& registry,
    const std::shared_ptr<grpc::Channel>& channel, const pb::Hello& hello,
    std::function<void(StreamId)> wake) {
  pb::PeerService::Stub stub(channel);  // starts the call and is not kept
  return DialledCall<pb::ControlRequest, pb::ControlResponse>::Start(
      registry, hello,
      [&stub](auto* context, auto* reactor) {
        stub.async()->Control(context, reactor);
      },
      std::move(wake));
}

std::shared_ptr<Stream> DialBulk(const std::shared_ptr<CallRegistry>& registry,
                                 const std::shared_ptr<grpc::Channel>& channel,
                                 const pb::Hello& hello,
                                 std::function<void(StreamId)> wake) {
  pb::PeerService::Stub stub(channel);
  return DialledCall<pb::BulkRequest, pb::BulkResponse>::Start(
      registry, hello,
      [&stub](auto* context, auto* reactor) {
        stub.async()->Bulk(context, reactor);
      },
      std::move(wake));
}

}  // namespace dfl::exchange
