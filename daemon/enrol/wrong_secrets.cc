#include "daemon/enrol/wrong_secrets.h"

#include <algorithm>

namespace dfl::enrol {

bool WrongSecrets::MayAsk(absl::string_view host, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = hosts_.find(host);
  return found == hosts_.end() || now >= found->second.since + kPeriod ||
         found->second.count < kPerPeriod;
}

void WrongSecrets::Count(absl::string_view host, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    if (hosts_.size() >= kMaxHosts) {
      hosts_.erase(std::min_element(hosts_.begin(), hosts_.end(),
                                    [](const auto& a, const auto& b) {
                                      return a.second.since < b.second.since;
                                    }));
    }
    found = hosts_.emplace(std::string(host), Tally{now, 0}).first;
  }
  Tally& tally = found->second;
  if (now >= tally.since + kPeriod) tally = {now, 0};
  ++tally.count;
}

std::string HostOfPeer(absl::string_view peer) {
  const size_t port = peer.rfind(':');
  const size_t kind = peer.find(':');
  if (port == absl::string_view::npos || port == kind) {
    return std::string(peer);
  }
  return std::string(peer.substr(kind + 1, port - kind - 1));
}

}  // namespace dfl::enrol
