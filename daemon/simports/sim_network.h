// A network in virtual time: hosts known by their address, directed paths with
// delay, rate and jitter between them, and everything that goes wrong with a
// TCP connection between two processes.
//
// What is modelled
//   Time      a frame leaves after size / rate, one after the other (control
//             frames first), and arrives `delay` (+ jitter) later, never before
//             an earlier frame of its stream. A dial takes two round trips.
//   Cut       the connection is reset: both ends lose the link at once, what
//             was queued or under way is gone; dials are refused until Heal.
//   Black hole  nothing arrives any more and nobody is told; queues fill up.
//             Healed in time, the connection goes on where it was (TCP sends
//             again); else both ends give the link up after keepalive_timeout.
//             Dials run into dial_timeout.
//   Crash     destroying a SimTransport: its links are reset.
//   Restart   a new SimTransport with the same address.
// Sizes are ports::EncodedSize, so bytes counted here are bytes on the wire
// (without HTTP/2 and TCP framing). Frames are moved, never copied.
//
// Each frame delivered and each link that comes or goes is added to the
// scheduler's trace. Single-threaded.
#ifndef DFL_SIMPORTS_SIM_NETWORK_H_
#define DFL_SIMPORTS_SIM_NETWORK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/fifo.h"
#include "daemon/base/rng.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/transport.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::simports {

class SimTransport;

// One direction between two hosts.
struct SimPath {
  absl::Duration delay = absl::Milliseconds(1);
  // Bytes per second; 0: no limit. Each link has the rate for itself.
  double rate = 0;
  // Each frame takes up to this much longer, drawn uniformly.
  absl::Duration jitter;
  // Probability that a frame is lost with its link: the connection is reset
  // when it should arrive, and may be dialled again at once.
  double reset_probability = 0;
};

struct SimTraffic {
  int64_t frames = 0;
  int64_t bytes = 0;
};

struct SimNetworkOptions {
  SimPath path;  // between hosts that SetPath says nothing about
  absl::Duration dial_timeout = absl::Seconds(5);
  absl::Duration keepalive_timeout = absl::Seconds(30);
};

class SimNetwork {
 public:
  SimNetwork(SimScheduler& scheduler, uint64_t seed,
             SimNetworkOptions options = {});
  // All transports must be gone.
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // Frames that leave from now on go by it. One direction, or both.
  void SetPath(const std::string& from, const std::string& to,
               const SimPath& path);
  void SetPathBothWays(const std::string& a, const std::string& b,
                       const SimPath& path);

  // Both directions; see the top of this file.
  void Cut(const std::string& a, const std::string& b);
  void BlackHole(const std::string& a, const std::string& b);
  // Only what goes from `from` to `to` vanishes.
  void BlackHoleOneWay(const std::string& from, const std::string& to);
  // Ends Cut and both kinds of black hole between the two.
  void Heal(const std::string& a, const std::string& b);
  // Resets the links between the two; they may be dialled again at once.
  void ResetLinks(const std::string& a, const std::string& b);

  // Frames delivered so far: from one host to another, and altogether.
  SimTraffic delivered(const std::string& from, const std::string& to) const;
  const SimTraffic& delivered() const { return delivered_; }
  // Frames that left a host so far, those that never arrived included.
  const SimTraffic& sent() const { return sent_; }

  SimScheduler& scheduler() { return scheduler_; }

 private:
  friend class SimTransport;
  // Places in the lists below, which are never used again.
  using TransportId = size_t;
  using ConnectionId = size_t;

  enum class Fault { kNone, kCut, kBlackHole };
  // A directed path with its state.
  struct Route {
    std::string from;
    std::string to;
    SimPath path;
    Fault fault = Fault::kNone;
    uint64_t fault_epoch = 0;  // raised by each change of `fault`
    SimTraffic delivered;
  };
  struct SizedFrame {
    ports::Frame frame;
    int64_t size = 0;
  };
  enum Stream { kControl = 0, kBulk = 1 };
  enum class EndState { kPending, kUp, kClosed };
  // One end of a connection, and what it sends.
  struct End {
    TransportId transport = 0;
    ports::LinkId link = 0;
    EndState state = EndState::kPending;
    Route* route = nullptr;  // to the other end
    Fifo<SizedFrame> queue[2];
    Fifo<SizedFrame> in_flight[2];
    absl::Time last_arrival[2] = {absl::InfinitePast(), absl::InfinitePast()};
    int64_t queued_bytes = 0;
    bool refused = false;       // a Send since the queue was last below half
    bool transmitting = false;  // a frame is leaving
  };
  struct Connection {
    ConnectionId id = 0;
    std::string dialled_address;
    End ends[2];  // dialler, listener
  };

  TransportId Register(SimTransport* transport);
  void Unregister(TransportId id);
  SimTransport* Find(TransportId transport) const {
    return transports_[transport];
  }
  SimTransport* FindListener(const std::string& address) const;
  Route& RouteBetween(const std::string& from, const std::string& to);

  void Dial(TransportId dialler, const std::string& address);
  void Accept(TransportId dialler, const std::string& address,
              absl::Time deadline);
  void FinishDial(ConnectionId id);
  void FailDial(TransportId dialler, const std::string& address,
                absl::Time when, absl::Status status);

  absl::Status Send(SimTransport& from, ports::LinkId link, ports::Frame frame);
  void Transmit(ConnectionId id, int index);
  void FrameLeft(ConnectionId id, int index, Stream stream);
  void Depart(ConnectionId id, int index, Stream stream, End& end);
  void Deliver(ConnectionId id, int index, Stream stream);
  void CloseByUser(SimTransport& from, ports::LinkId link,
                   const absl::Status& reason);
  // End `index` is told; does nothing when it is closed.
  void CloseEnd(Connection& connection, int index, const absl::Status& reason);
  // Tells the other end of a closed one, as soon as the path carries it.
  void AnnounceClose(Connection& connection, int closed_end);
  void ResetConnection(Connection& connection, const absl::Status& reason);
  void EraseIfClosed(ConnectionId id);
  void SetFault(const std::string& from, const std::string& to, Fault fault);
  void KeepaliveExpired(Route* route, uint64_t epoch);
  Connection* FindConnection(ConnectionId id) { return connections_[id].get(); }
  std::set<ConnectionId> ConnectionsBetween(const std::string& a,
                                            const std::string& b);
  void Trace(const char* what, ports::LinkId link, int64_t size);

  SimScheduler& scheduler_;
  const SimNetworkOptions options_;
  const SimScheduler::OwnerId owner_;
  Rng rng_;
  ports::LinkId last_link_ = 0;
  std::vector<SimTransport*> transports_;  // null: gone
  std::map<std::string, TransportId> listeners_;
  std::map<std::pair<std::string, std::string>, Route> routes_;
  std::vector<std::unique_ptr<Connection>> connections_;  // null: closed
  SimTraffic delivered_;
  SimTraffic sent_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_NETWORK_H_
