// What a peer sends: control frames, chunks and the hello, as protobuf. The
// first byte says which.
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/base/check.h"
#include "daemon/exchange/proto_frames.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/member_frames.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

namespace pb = ::dfl::peer::v1;

// The message around a frame, as the dialler writes it.
pb::ControlRequest Wrapped(const ports::Frame& frame, pb::ControlFrame*) {
  pb::ControlRequest request;
  exchange::ToProto(frame, request.mutable_frame());
  return request;
}

pb::BulkRequest Wrapped(const ports::Frame& frame, pb::Chunk*) {
  pb::BulkRequest request;
  exchange::ToProto(std::get<ports::Chunk>(frame), request.mutable_chunk());
  return request;
}

const pb::ControlFrame& Inner(const pb::ControlRequest& request) {
  return request.frame();
}
const pb::Chunk& Inner(const pb::BulkRequest& request) {
  return request.chunk();
}

// A frame that is taken keeps the bounds, has the size that was told, and comes
// back the same.
template <typename Message>
void CheckFrame(absl::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  const absl::StatusOr<ports::Frame> frame = exchange::FromProto(&message);
  if (!frame.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(frame.status()));
    return;
  }
  DFL_CHECK(ports::ValidateFrame(*frame).ok());
  const auto request = Wrapped(*frame, &message);
  const std::string wire = request.SerializeAsString();
  DFL_CHECK(ports::EncodedSize(*frame) == static_cast<int64_t>(wire.size()));
  DFL_CHECK(static_cast<int64_t>(wire.size()) <=
            ports::kMaxChunkBytes + ports::kMaxControlFrameBytes);
  Message again = Inner(request);
  const absl::StatusOr<ports::Frame> back = exchange::FromProto(&again);
  DFL_CHECK(back.ok());
  DFL_CHECK(Wrapped(*back, &again).SerializeAsString() == wire);
}

void CheckHello(absl::string_view bytes) {
  pb::Hello hello;
  if (!hello.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  const absl::StatusOr<ports::PeerIdentity> peer = exchange::CheckHello(hello);
  if (!peer.ok()) return;
  DFL_CHECK(ValidateNodeName(peer->node.name()).ok());
  DFL_CHECK(static_cast<int64_t>(peer->advertised.size()) <=
            ports::kMaxAddressBytes);
  const absl::StatusOr<ports::PeerIdentity> back =
      exchange::CheckHello(exchange::MakeHello(*peer, hello.link_nonce()));
  DFL_CHECK(back.ok() && back->node == peer->node &&
            back->incarnation == peer->incarnation &&
            back->advertised == peer->advertised);
}

}  // namespace

DFL_FUZZ_TARGET(frames)(absl::string_view bytes) {
  Pieces pieces(bytes);
  switch (pieces.Byte() % 3) {
    case 0:
      return CheckFrame<pb::ControlFrame>(pieces.Rest());
    case 1:
      return CheckFrame<pb::Chunk>(pieces.Rest());
    default:
      return CheckHello(pieces.Rest());
  }
}

}  // namespace dfl::fuzz
