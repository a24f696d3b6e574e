// ports::Frame <-> the messages of proto/dfl/peer/v1. Everything that arrives
// is checked here before the rest of the daemon sees it.
#ifndef DFL_EXCHANGE_PROTO_FRAMES_H_
#define DFL_EXCHANGE_PROTO_FRAMES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/transport.h"
#include "dfl/peer/v1/peer.pb.h"

namespace dfl::exchange {

namespace pb = ::dfl::peer::v1;

// The versions that this build speaks.
inline constexpr uint32_t kProtocolVersion = 2;
inline constexpr uint32_t kOldestProtocolVersion = 2;

// Data is moved; the bytes of a Chunk are not copied. Bytes outside printable
// ASCII become '?' in texts for people. `frame` is valid
// (ports::ValidateFrame) and, for ControlFrame, not a Chunk.
void ToProto(ports::Frame frame, pb::ControlFrame* message);
void ToProto(ports::Chunk chunk, pb::Chunk* message);

// Moves the data out of `message`.
// Errors: INVALID_ARGUMENT: no or an unknown kind of frame, or it breaks a
// bound of ports/frames.h.
absl::StatusOr<ports::Frame> FromProto(pb::ControlFrame* message);
absl::StatusOr<ports::Frame> FromProto(pb::Chunk* message);

pb::Hello MakeHello(const ports::PeerIdentity& self, uint64_t link_nonce);

// The identity in a Hello.
// Errors: FAILED_PRECONDITION: no common protocol version; INVALID_ARGUMENT: a
// field is missing or malformed.
absl::StatusOr<ports::PeerIdentity> CheckHello(const pb::Hello& hello);

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_PROTO_FRAMES_H_
