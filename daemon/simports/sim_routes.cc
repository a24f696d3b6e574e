#include "daemon/simports/sim_routes.h"

namespace dfl::simports {

SimRoute& SimRoutes::Between(const std::string& from, const std::string& to) {
  const auto [it, fresh] = routes_.try_emplace(std::make_pair(from, to));
  if (fresh) {
    it->second.from = from;
    it->second.to = to;
    it->second.path = default_path_;
  }
  return it->second;
}

SimTraffic SimRoutes::delivered(const std::string& from,
                                const std::string& to) const {
  const auto found = routes_.find(std::make_pair(from, to));
  return found == routes_.end() ? SimTraffic() : found->second.delivered;
}

}  // namespace dfl::simports
