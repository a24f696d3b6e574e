#include "daemon/simports/sim_transport.h"

#include "daemon/base/check.h"

namespace dfl::simports {

SimTransport::SimTransport(SimNetwork& network, SimLoop& loop,
                           SimTransportOptions options)
    : network_(network), loop_(loop), options_(std::move(options)) {
  DFL_CHECK(!options_.address.empty());
  id_ = network_.hosts_.Add(this);
}

SimTransport::~SimTransport() { network_.connections_.Leave(*this); }

void SimTransport::Dial(const std::string& address) {
  DFL_CHECK(handler_ != nullptr);
  network_.Dial(id_, address);
}

void SimTransport::Close(ports::LinkId link, const absl::Status& reason) {
  network_.connections_.Close(*this, link, reason);
}

absl::Status SimTransport::Send(ports::LinkId link, ports::Frame frame) {
  return network_.connections_.Send(*this, link, std::move(frame));
}

int64_t SimTransport::UnsentBytes(ports::LinkId link) const {
  return network_.connections_.UnsentBytes(*this, link);
}

ports::PeerIdentity SimTransport::identity() const {
  ports::PeerIdentity identity;
  identity.node = options_.node;
  identity.incarnation = options_.incarnation;
  if (options_.accepts_dials) identity.advertised = options_.address;
  return identity;
}

}  // namespace dfl::simports
