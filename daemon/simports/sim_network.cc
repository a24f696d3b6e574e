#include "daemon/simports/sim_network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::simports {

SimNetwork::SimNetwork(SimScheduler& scheduler, uint64_t seed,
                       SimNetworkOptions options)
    : scheduler_(scheduler),
      options_(options),
      owner_(scheduler.NewOwner()),
      routes_(options.path),
      hosts_(scheduler, owner_),
      connections_(scheduler, owner_, hosts_, seed) {}

SimNetwork::~SimNetwork() { scheduler_.CancelOwned(owner_); }

void SimNetwork::SetPath(const std::string& from, const std::string& to,
                         const SimPath& path) {
  routes_.Between(from, to).path = path;
}

void SimNetwork::SetPathBothWays(const std::string& a, const std::string& b,
                                 const SimPath& path) {
  SetPath(a, b, path);
  SetPath(b, a, path);
}

// Dialling.

void SimNetwork::Dial(SimTransportId dialler, const std::string& address) {
  const std::string& here = hosts_.Find(dialler)->options().address;
  const absl::Duration there = routes_.Between(here, address).path.delay;
  const absl::Duration back = routes_.Between(address, here).path.delay;
  const absl::Time deadline = scheduler_.Now() + options_.dial_timeout;
  scheduler_.At(std::min(deadline, scheduler_.Now() + 2 * there + back), owner_,
                [this, dialler, address, deadline] {
                  Accept(dialler, address, deadline);
                });
}

void SimNetwork::Accept(SimTransportId dialler, const std::string& address,
                        absl::Time deadline) {
  SimTransport* from = hosts_.Find(dialler);
  if (from == nullptr) return;
  SimRoute& there = routes_.Between(from->options().address, address);
  SimRoute& back = routes_.Between(address, from->options().address);
  const absl::Time answer = scheduler_.Now() + back.path.delay;
  if (there.fault == SimRoute::Fault::kBlackHole ||
      back.fault == SimRoute::Fault::kBlackHole || answer > deadline) {
    hosts_.FailDial(dialler, address, deadline,
                    absl::UnavailableError(absl::StrCat(
                        "dialling ", address, ": no answer within ",
                        absl::FormatDuration(options_.dial_timeout))));
    return;
  }
  SimTransport* to = hosts_.FindListener(address);
  if (to == nullptr || there.fault == SimRoute::Fault::kCut) {
    hosts_.FailDial(dialler, address, answer,
                    absl::UnavailableError(absl::StrCat(
                        "dialling ", address, ": connection refused")));
    return;
  }
  if (to->options().node == from->options().node) {
    hosts_.FailDial(dialler, address, answer,
                    absl::FailedPreconditionError(absl::StrCat(
                        "dialling ", address, ": it is ",
                        to == from ? ports::kThisNodeItself
                                   : "another daemon with this node's name",
                        " (\"", to->options().node.name(), "\")")));
    return;
  }
  if (const absl::Status refused = to->handler()->Admit(from->identity());
      !refused.ok()) {
    hosts_.FailDial(
        dialler, address, answer,
        absl::Status(refused.code(), absl::StrCat("dialling ", address, ": ",
                                                  refused.message())));
    return;
  }
  connections_.Open(*from, *to, address, there, back, answer);
}

// Faults.

void SimNetwork::SetFault(const std::string& from, const std::string& to,
                          SimRoute::Fault fault) {
  SimRoute& route = routes_.Between(from, to);
  if (route.fault == fault) return;
  route.fault = fault;
  const uint64_t epoch = ++route.fault_epoch;
  if (fault == SimRoute::Fault::kBlackHole) {
    scheduler_.After(options_.keepalive_timeout, owner_,
                     [this, &route, epoch] { KeepaliveExpired(route, epoch); });
  }
}

void SimNetwork::KeepaliveExpired(const SimRoute& route, uint64_t epoch) {
  if (route.fault_epoch != epoch) return;
  connections_.Reset(connections_.Over(route),
                     absl::UnavailableError(absl::StrCat(
                         "the peer has been silent for ",
                         absl::FormatDuration(options_.keepalive_timeout))));
}

void SimNetwork::Cut(const std::string& a, const std::string& b) {
  SetFault(a, b, SimRoute::Fault::kCut);
  SetFault(b, a, SimRoute::Fault::kCut);
  ResetLinks(a, b);
}

SimConnections::ConnectionSet SimNetwork::ConnectionsBetween(
    const std::string& a, const std::string& b) {
  return connections_.Between(routes_.Between(a, b), routes_.Between(b, a));
}

void SimNetwork::ResetLinks(const std::string& a, const std::string& b) {
  connections_.Reset(ConnectionsBetween(a, b),
                     absl::UnavailableError("connection reset by peer"));
}

void SimNetwork::BlackHole(const std::string& a, const std::string& b) {
  BlackHoleOneWay(a, b);
  BlackHoleOneWay(b, a);
}

void SimNetwork::BlackHoleOneWay(const std::string& from,
                                 const std::string& to) {
  SetFault(from, to, SimRoute::Fault::kBlackHole);
}

void SimNetwork::Heal(const std::string& a, const std::string& b) {
  SetFault(a, b, SimRoute::Fault::kNone);
  SetFault(b, a, SimRoute::Fault::kNone);
  connections_.Revive(ConnectionsBetween(a, b));
}

}  // namespace dfl::simports
