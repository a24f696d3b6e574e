#include "daemon/simports/sim_hosts.h"

#include <algorithm>
#include <utility>

#include "daemon/base/check.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::simports {

SimHosts::~SimHosts() {
  DFL_CHECK(std::all_of(transports_.begin(), transports_.end(),
                        [](const SimTransport* t) { return t == nullptr; }));
}

SimTransportId SimHosts::Add(SimTransport* transport) {
  const SimTransportId id = transports_.size();
  transports_.push_back(transport);
  const bool fresh =
      addresses_.emplace(transport->options().address, id).second;
  DFL_CHECK(fresh);
  return id;
}

void SimHosts::Remove(SimTransportId id) {
  addresses_.erase(transports_[id]->options().address);
  transports_[id] = nullptr;
}

SimTransport* SimHosts::FindAt(const std::string& address) const {
  const auto found = addresses_.find(address);
  return found == addresses_.end() ? nullptr : Find(found->second);
}

SimTransport* SimHosts::FindListener(const std::string& address) const {
  SimTransport* transport = FindAt(address);
  return transport != nullptr && transport->options().accepts_dials &&
                 transport->handler() != nullptr
             ? transport
             : nullptr;
}

void SimHosts::FailDial(SimTransportId dialler, const std::string& address,
                        absl::Time when, absl::Status status) {
  scheduler_.At(when, owner_,
                [this, dialler, address, status = std::move(status)] {
                  SimTransport* transport = Find(dialler);
                  if (transport == nullptr) return;
                  if (ports::Transport::Handler* h = transport->handler()) {
                    h->OnDialFailed(address, status);
                  }
                });
}

}  // namespace dfl::simports
