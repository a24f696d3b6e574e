// A network in virtual time: hosts known by their address, directed paths with
// delay, rate and jitter between them, and everything that goes wrong with a
// TCP connection between two processes.
//
// What is modelled
//   Time      a frame leaves after size / rate, one after the other (control
//             frames first), and arrives `delay` (+ jitter) later, never before
//             an earlier frame of its stream. A dial takes two round trips.
//   Cut       the connection is reset. Both ends lose the link at once, and
//             frames queued or in flight are lost. Dials fail until Heal.
//   Black hole  nothing arrives any more and neither end is told; queues fill
//             up. If it is healed in time, the connection continues where it
//             was (TCP sends again). Otherwise both ends give the link up
//             after keepalive_timeout. Dials fail after dial_timeout.
//   Crash     a SimTransport is destroyed; its links are reset.
//   Restart   a new SimTransport has the same address.
// Sizes are ports::EncodedSize, so bytes counted here are bytes on the wire
// (without HTTP/2 and TCP framing). Frames are moved, never copied.
//
// Each frame delivered and each link that comes or goes is added to the
// scheduler's trace. Single-threaded.
#ifndef DFL_SIMPORTS_SIM_NETWORK_H_
#define DFL_SIMPORTS_SIM_NETWORK_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "daemon/simports/sim_connections.h"
#include "daemon/simports/sim_hosts.h"
#include "daemon/simports/sim_routes.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::simports {

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

  // Applies to frames that leave from now on, in one direction or in both.
  void SetPath(const std::string& from, const std::string& to,
               const SimPath& path);
  void SetPathBothWays(const std::string& a, const std::string& b,
                       const SimPath& path);

  // Both directions; see the top of this file.
  void Cut(const std::string& a, const std::string& b);
  void BlackHole(const std::string& a, const std::string& b);
  // A black hole for what goes from `from` to `to` only.
  void BlackHoleOneWay(const std::string& from, const std::string& to);
  // Ends Cut and both kinds of black hole between the two.
  void Heal(const std::string& a, const std::string& b);
  // Resets the links between the two; they may be dialled again at once.
  void ResetLinks(const std::string& a, const std::string& b);

  // Frames delivered so far: from one host to another, and altogether.
  SimTraffic delivered(const std::string& from, const std::string& to) const {
    return routes_.delivered(from, to);
  }
  const SimTraffic& delivered() const { return connections_.delivered(); }
  // Frames that have left a host so far, including those that never arrived.
  const SimTraffic& sent() const { return connections_.sent(); }

  SimScheduler& scheduler() { return scheduler_; }

 private:
  friend class SimTransport;

  void Dial(SimTransportId dialler, const std::string& address);
  void Accept(SimTransportId dialler, const std::string& address,
              absl::Time deadline);
  void SetFault(const std::string& from, const std::string& to,
                SimRoute::Fault fault);
  void KeepaliveExpired(const SimRoute& route, uint64_t epoch);
  SimConnections::ConnectionSet ConnectionsBetween(const std::string& a,
                                                   const std::string& b);

  SimScheduler& scheduler_;
  const SimNetworkOptions options_;
  const SimScheduler::OwnerId owner_;
  SimRoutes routes_;
  SimHosts hosts_;
  SimConnections connections_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_NETWORK_H_
