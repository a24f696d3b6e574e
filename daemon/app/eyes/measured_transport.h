// A transport that counts what passes it: frames, models that are announced
// again, how long a neighbour takes to take one, bytes that wait.
#ifndef DFL_APP_EYES_MEASURED_TRANSPORT_H_
#define DFL_APP_EYES_MEASURED_TRANSPORT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"
#include "daemon/web/meters.h"

namespace dfl::app {

// Loop only.
class MeasuredTransport final : public ports::Transport,
                                private ports::Transport::Handler {
 public:
  using Handler = ports::Transport::Handler;  // both bases have the name

  // All outlive it.
  MeasuredTransport(ports::Transport& transport, ports::Loop& loop,
                    web::Meters& meters)
      : transport_(transport), loop_(loop), meters_(meters) {}

  int64_t links() const { return static_cast<int64_t>(links_.size()); }
  // Over all links.
  int64_t QueuedBytes() const;

  // ports::Transport
  void SetHandler(Handler* handler) override {
    handler_ = handler;
    transport_.SetHandler(this);
  }
  void Dial(const std::string& address) override { transport_.Dial(address); }
  void Close(ports::LinkId link, const absl::Status& reason) override {
    transport_.Close(link, reason);
  }
  absl::Status Send(ports::LinkId link, ports::Frame frame) override;
  int64_t max_queued_bytes() const override {
    return transport_.max_queued_bytes();
  }
  int64_t UnsentBytes(ports::LinkId link) const override {
    return transport_.UnsentBytes(link);
  }

 private:
  // ports::Transport::Handler
  absl::Status Admit(const ports::PeerIdentity& peer) override {
    return handler_->Admit(peer);
  }
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity& peer,
                const std::string& dialled_address) override;
  void OnDialFailed(const std::string& address,
                    const absl::Status& status) override {
    handler_->OnDialFailed(address, status);
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override;
  void OnWritable(ports::LinkId link) override { handler_->OnWritable(link); }
  void OnLinkDown(ports::LinkId link, const absl::Status& reason) override;

  void OnAnnounced(uint64_t transfer);
  void OnTaken(uint64_t transfer);

  ports::Transport& transport_;
  ports::Loop& loop_;
  web::Meters& meters_;
  Handler* handler_ = nullptr;
  std::set<ports::LinkId> links_;
  // Our transfers that no end was heard of, and when each was announced first.
  std::map<uint64_t, absl::Time> announced_;
};

}  // namespace dfl::app

#endif  // DFL_APP_EYES_MEASURED_TRANSPORT_H_
