// The directed paths between the hosts of a SimNetwork: their speed, their
// faults and what they have carried.
#ifndef DFL_SIMPORTS_SIM_ROUTES_H_
#define DFL_SIMPORTS_SIM_ROUTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace dfl::simports {

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

// A path with its state. sim_network.h says what the faults are.
struct SimRoute {
  enum class Fault { kNone, kCut, kBlackHole };

  std::string from;
  std::string to;
  SimPath path;
  Fault fault = Fault::kNone;
  uint64_t fault_epoch = 0;  // raised by each change of `fault`
  SimTraffic delivered;
};

class SimRoutes {
 public:
  // All routes have `path` until another one is set.
  explicit SimRoutes(const SimPath& path) : default_path_(path) {}

  // The route, which is made at the first call. The reference stays valid as
  // long as this object lives.
  SimRoute& Between(const std::string& from, const std::string& to);

  // Frames delivered so far from one host to another.
  SimTraffic delivered(const std::string& from, const std::string& to) const;

 private:
  const SimPath default_path_;
  std::map<std::pair<std::string, std::string>, SimRoute> routes_;
};

}  // namespace dfl::simports

#endif  // DFL_SIMPORTS_SIM_ROUTES_H_
