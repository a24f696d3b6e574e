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

std::string PeerOf(const grpc::AuthContext& context) {
  return internal::Property(context, GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
}

absl::Status CallRegistry::Add(std::shared_ptr<Stream> stream,
                               const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  if (closing_) return absl::UnavailableError("the node is shutting down");
  if (static_cast<int64_t>(calls_.size()) >= max_calls_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the node has ", calls_.size(), " streams open; no more are accepted"));
  }
  if (!peer.empty()) {
    int64_t& count = of_peer_[peer];
    if (count >= kMaxCallsOfPeer) {
      return absl::ResourceExhaustedError(absl::StrCat(
          peer, " has ", count, " streams open here; no more are accepted"));
    }
    ++count;
  }
  const StreamId id = stream->id();
  calls_.emplace(id, LiveCall{std::move(stream), peer});
  return absl::OkStatus();
}

void CallRegistry::Remove(StreamId id) {
  LiveCall removed;  // dies after the lock
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  removed = std::move(found->second);
  calls_.erase(found);
  const auto of_peer = of_peer_.find(removed.peer);
  if (of_peer != of_peer_.end() && --of_peer->second == 0) {
    of_peer_.erase(of_peer);
  }
}

void CallRegistry::Shutdown() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    for (const auto& [id, call] : calls_) streams.push_back(call.stream);
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
