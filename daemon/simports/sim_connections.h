// The connections of a SimNetwork: their two ends, the frames that are queued
// or in flight on them, and how they end. SimNetwork makes and breaks them.
//
// Either end may be gone at any event. Scheduled tasks therefore name a
// connection by its id, which is never used again. Single-threaded.
#ifndef DFL_SIMPORTS_SIM_CONNECTIONS_H_
#define DFL_SIMPORTS_SIM_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/fifo.h"
#include "daemon/base/rng.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/transport.h"
#include "daemon/simports/sim_hosts.h"
#include "daemon/simports/sim_routes.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::simports {

// A place in SimConnections' list, which is never used again.
using SimConnectionId = size_t;

// A connection between two processes. Each of its two ends has a queue for
// control frames and one for chunks, as the streams of a real link do.
struct SimConnection {
  enum Stream { kControl = 0, kBulk = 1 };
  enum class EndState { kPending, kUp, kClosed };
  struct SizedFrame {
    ports::Frame frame;
    int64_t size = 0;
  };
  // One end, and what it sends.
  struct End {
    SimTransportId transport = 0;
    ports::LinkId link = 0;
    EndState state = EndState::kPending;
    SimRoute* route = nullptr;  // to the other end
    Fifo<SizedFrame> queue[2];
    Fifo<SizedFrame> in_flight[2];
    absl::Time last_arrival[2] = {absl::InfinitePast(), absl::InfinitePast()};
    int64_t queued_bytes = 0;
    bool refused = false;       // a Send since the queue was last below half
    bool transmitting = false;  // a frame is leaving
  };

  SimConnectionId id = 0;
  std::string dialled_address;
  End ends[2];  // dialler, listener
};

class SimConnections {
 public:
  using ConnectionId = SimConnectionId;
  using ConnectionSet = std::set<ConnectionId>;

  // Scheduled events belong to `owner`, who cancels them.
  SimConnections(SimScheduler& scheduler, SimScheduler::OwnerId owner,
                 SimHosts& hosts, uint64_t seed);
  SimConnections(const SimConnections&) = delete;
  SimConnections& operator=(const SimConnections&) = delete;

  // Removes a crashed process; its links are reset.
  void Leave(SimTransport& process);

  // Makes a connection. `to` knows of it at once; `from`, which dialled
  // `address`, knows of it at `answer` (FinishDial).
  void Open(SimTransport& from, SimTransport& to, const std::string& address,
            SimRoute& there, SimRoute& back, absl::Time answer);

  // As in ports::Transport, on behalf of `from`.
  absl::Status Send(SimTransport& from, ports::LinkId link, ports::Frame frame);
  // As ports::Transport's.
  int64_t UnsentBytes(const SimTransport& from, ports::LinkId link) const;
  void Close(SimTransport& from, ports::LinkId link,
             const absl::Status& reason);

  // Both ends lose the link at once.
  void Reset(const ConnectionSet& connections, const absl::Status& reason);
  // The connections between two hosts, given the routes of both directions; and
  // the connections that use `route`.
  ConnectionSet Between(const SimRoute& there, const SimRoute& back) const;
  ConnectionSet Over(const SimRoute& route) const;
  // Call when a route carries frames again. Waiting frames leave, and an end
  // that missed the close of its link is told.
  void Revive(const ConnectionSet& connections);

  // Frames delivered so far.
  const SimTraffic& delivered() const { return delivered_; }
  // Frames that have left a host so far, including those that never arrived.
  const SimTraffic& sent() const { return sent_; }

 private:
  using Connection = SimConnection;
  using End = SimConnection::End;
  using EndState = SimConnection::EndState;
  using Stream = SimConnection::Stream;
  using SizedFrame = SimConnection::SizedFrame;

  Connection* FindConnection(ConnectionId id) const {
    return connections_[id].get();
  }
  void FinishDial(ConnectionId id);

  // Frames of end `index`.
  void Transmit(ConnectionId id, int index);
  void FrameLeft(ConnectionId id, int index, Stream stream);
  void Depart(ConnectionId id, int index, Stream stream, End& end);
  void Deliver(ConnectionId id, int index, Stream stream);

  // Closes end `index` and tells its transport; does nothing if it is closed.
  void CloseEnd(Connection& connection, int index, const absl::Status& reason);
  // Tells the other end of a close, as soon as the path can carry that.
  void AnnounceClose(Connection& connection, int closed_end);
  void ResetConnection(Connection& connection, const absl::Status& reason);
  void EraseIfClosed(ConnectionId id);
  void Trace(const char* what, ports::LinkId link, int64_t size);

  SimScheduler& scheduler_;
  const SimScheduler::OwnerId owner_;
  SimHosts& hosts_;
  Rng rng_;
  ports::LinkId last_link_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // null: closed
  SimTraffic delivered_;
  SimTraffic sent_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_CONNECTIONS_H_
