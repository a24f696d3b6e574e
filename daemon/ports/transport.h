// Port: moves frames between this node and its direct neighbours.
//
// Implementations: exchange/grpc_transport.h (two streams a neighbour) and
// simports/sim_transport.h (virtual links in one process). Both pass
// tests/contract/transport_contract.h; a new one must too.
//
// What a caller may rely on
//   Order     control frames of a link arrive in the order sent, and so do
//             Chunks; between the two kinds there is no order.
//   Loss      a frame arrives at most once; it is lost only with its link.
//   Links     a LinkId is never used again, so late frames can be told apart.
//             Two links to one peer may exist for a moment (both dialled);
//             which one stays is the caller's decision (runtime/links.h).
//   Delivery  Handler calls come one at a time, on the loop, never from inside
//             a call to Transport. After Close no more come for that link,
//             except its OnLinkDown.
//   Bounds    frames over the limits of ports/frames.h are refused on both
//             sides; queued bytes of a link never pass max_queued_bytes().
//   Trust     what arrives is untrusted input. Identity is what the peer says
//             it is, until TLS proves it.
#ifndef DFL_PORTS_TRANSPORT_H_
#define DFL_PORTS_TRANSPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"

namespace dfl::ports {

using LinkId = uint64_t;  // 0 is never a link

struct PeerIdentity {
  NodeId node;
  // Drawn at each start of the daemon: a new one means its memory is gone.
  uint64_t incarnation = 0;
  // Where the peer says it can be dialled, "host:port"; may be "".
  std::string advertised;
};

// What the text of a dial's FAILED_PRECONDITION has in it when this very node
// answers at the address.
inline constexpr char kThisNodeItself[] = "this node itself";

inline bool IsThisNodeItself(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) &&
         absl::StrContains(status.message(), kThisNodeItself);
}

// In the text of an UNAVAILABLE of Admit that is over within a second or so:
// the dialler is to try again soon.
inline constexpr char kIsBeingAsked[] = "is being asked whether it lives";

inline bool IsToBeTriedSoon(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         absl::StrContains(status.message(), kIsBeingAsked);
}

class Transport {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;

    // A peer that dialled asks for a link. Unless OK, it gets none and is told
    // the status. Comes before OnLinkUp, and may come twice for one link.
    virtual absl::Status Admit(const PeerIdentity& /*peer*/) {
      return absl::OkStatus();
    }

    // A link is up: identities were exchanged and frames may flow.
    // `dialled_address` is what we dialled, "" when the peer dialled us.
    virtual void OnLinkUp(LinkId link, const PeerIdentity& peer,
                          const std::string& dialled_address) = 0;

    // Dial(address) came to nothing. UNAVAILABLE: nobody there; the text names
    // address and cause. FAILED_PRECONDITION: another protocol version, or
    // ourselves, see IsThisNodeItself.
    virtual void OnDialFailed(const std::string& address,
                              const absl::Status& status) = 0;

    virtual void OnFrame(LinkId link, Frame frame) = 0;

    // The queue of `link` fell below half of max_queued_bytes() after a Send
    // was refused with RESOURCE_EXHAUSTED.
    virtual void OnWritable(LinkId link) = 0;

    // The link is gone; comes exactly once for each OnLinkUp.
    virtual void OnLinkDown(LinkId link, const absl::Status& reason) = 0;
  };

  virtual ~Transport() = default;

  // Before the first Dial; `handler` must outlive the transport.
  virtual void SetHandler(Handler* handler) = 0;

  // Starts to connect to "host:port" (name, IPv4 or [IPv6]). Ends in one
  // OnLinkUp or OnDialFailed within dial_timeout (5 s).
  virtual void Dial(const std::string& address) = 0;

  // Closes a link; unknown or closed ones are ignored.
  virtual void Close(LinkId link, const absl::Status& reason) = 0;

  // Queues `frame`. Never blocks. OK means queued, not delivered.
  // Errors:
  //   NOT_FOUND           no such link is up.
  //   RESOURCE_EXHAUSTED  the queue would pass max_queued_bytes(); the link is
  //                       healthy: wait for OnWritable. Control frames are
  //                       refused only beyond twice that bound.
  //   INVALID_ARGUMENT    the frame is larger than its bound.
  virtual absl::Status Send(LinkId link, Frame frame) = 0;

  virtual int64_t max_queued_bytes() const = 0;

  // How many bytes of what Send took have not left yet; 0 for a link that is
  // not up.
  virtual int64_t UnsentBytes(LinkId link) const = 0;
};

}  // namespace dfl::ports

#endif  // DFL_PORTS_TRANSPORT_H_
