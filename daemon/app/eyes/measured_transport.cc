#include "daemon/app/eyes/measured_transport.h"

#include <utility>
#include <variant>

namespace dfl::app {
namespace {

// Those without an end are of peers that are gone. Numbers rise, so the first
// is the oldest.
constexpr size_t kMostAnnounced = 4096;

void Add(web::Count& count) { count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

int64_t MeasuredTransport::QueuedBytes() const {
  int64_t bytes = 0;
  for (const ports::LinkId link : links_) bytes += transport_.UnsentBytes(link);
  return bytes;
}

absl::Status MeasuredTransport::Send(ports::LinkId link, ports::Frame frame) {
  uint64_t begun = 0;
  uint64_t given_up = 0;
  if (const auto* begin = std::get_if<ports::TransferBegin>(&frame)) {
    begun = begin->transfer;
  } else if (const auto* end = std::get_if<ports::TransferCancel>(&frame)) {
    if (end->by_sender) given_up = end->transfer;
  }
  const absl::Status sent = transport_.Send(link, std::move(frame));
  if (!sent.ok()) return sent;
  Add(meters_.frames_sent);
  if (begun != 0) OnAnnounced(begun);
  if (given_up != 0) announced_.erase(given_up);
  return sent;
}

void MeasuredTransport::OnAnnounced(uint64_t transfer) {
  if (!announced_.emplace(transfer, loop_.Now()).second) {
    Add(meters_.transfers_resumed);
  }
  if (announced_.size() > kMostAnnounced) announced_.erase(announced_.begin());
}

void MeasuredTransport::OnTaken(uint64_t transfer) {
  const auto found = announced_.find(transfer);
  if (found == announced_.end()) return;
  meters_.exchange.Observe(loop_.Now() - found->second);
  announced_.erase(found);
}

void MeasuredTransport::OnLinkUp(ports::LinkId link,
                                 const ports::PeerIdentity& peer,
                                 const std::string& dialled_address) {
  links_.insert(link);
  handler_->OnLinkUp(link, peer, dialled_address);
}

void MeasuredTransport::OnFrame(ports::LinkId link, ports::Frame frame) {
  Add(meters_.frames_received);
  if (const auto* ack = std::get_if<ports::TransferAck>(&frame)) {
    if (ack->complete) OnTaken(ack->transfer);
  } else if (const auto* end = std::get_if<ports::TransferCancel>(&frame)) {
    if (!end->by_sender) announced_.erase(end->transfer);
  }
  handler_->OnFrame(link, std::move(frame));
}

void MeasuredTransport::OnLinkDown(ports::LinkId link,
                                   const absl::Status& reason) {
  links_.erase(link);
  handler_->OnLinkDown(link, reason);
}

}  // namespace dfl::app
