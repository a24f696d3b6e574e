// The processes of a simulated network: who is at which address, and whether
// anybody is there to be told something.
#ifndef DFL_SIMPORTS_SIM_HOSTS_H_
#define DFL_SIMPORTS_SIM_HOSTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::simports {

class SimTransport;

// A place in SimHosts' list, which is never used again.
using SimTransportId = size_t;

class SimHosts {
 public:
  // What it schedules belongs to `owner`, who cancels it.
  SimHosts(SimScheduler& scheduler, SimScheduler::OwnerId owner)
      : scheduler_(scheduler), owner_(owner) {}
  // All transports must be gone.
  ~SimHosts();
  SimHosts(const SimHosts&) = delete;
  SimHosts& operator=(const SimHosts&) = delete;

  // A second process at an address in use is a bug.
  SimTransportId Add(SimTransport* transport);
  void Remove(SimTransportId id);

  // Null: it is gone.
  SimTransport* Find(SimTransportId id) const { return transports_[id]; }
  // The process at `address`, whether it accepts calls or not; null: none.
  SimTransport* FindAt(const std::string& address) const;
  // The process that accepts calls at `address`; null: none.
  SimTransport* FindListener(const std::string& address) const;

  // Tells `dialler` at `when` that its call to `address` failed.
  void FailDial(SimTransportId dialler, const std::string& address,
                absl::Time when, absl::Status status);

 private:
  SimScheduler& scheduler_;
  const SimScheduler::OwnerId owner_;
  std::vector<SimTransport*> transports_;  // null: gone
  std::map<std::string, SimTransportId> addresses_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_HOSTS_H_
