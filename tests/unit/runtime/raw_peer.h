// A neighbour that is no node: it says what a test tells it to say, true or
// not, and keeps what it hears.
#ifndef DFL_TESTS_UNIT_RUNTIME_RAW_PEER_H_
#define DFL_TESTS_UNIT_RUNTIME_RAW_PEER_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "daemon/ports/transport.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::runtime {

class RawPeer : public ports::Transport::Handler {
 public:
  RawPeer(simports::SimNetwork& network, const std::string& name,
          uint64_t incarnation = 1)
      : loop_(network.scheduler()),
        transport_(network, loop_, Options(name, incarnation)) {
    transport_.SetHandler(this);
  }

  void Dial(const std::string& address) { transport_.Dial(address); }
  absl::Status Send(ports::Frame frame) {
    return transport_.Send(link_, std::move(frame));
  }
  void Hang() { transport_.Close(link_, absl::CancelledError("hung up")); }

  bool linked() const { return link_ != 0; }
  int64_t links_up() const { return links_up_; }
  int64_t links_down() const { return links_down_; }

  template <typename F>
  std::vector<F> Heard() const {
    std::vector<F> heard;
    for (const ports::Frame& frame : frames_) {
      if (const auto* f = std::get_if<F>(&frame)) heard.push_back(*f);
    }
    return heard;
  }
  void Forget() { frames_.clear(); }

  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity&,
                const std::string&) override {
    link_ = link;
    ++links_up_;
  }
  void OnDialFailed(const std::string&, const absl::Status&) override {}
  void OnFrame(ports::LinkId, ports::Frame frame) override {
    frames_.push_back(std::move(frame));
  }
  void OnWritable(ports::LinkId) override {}
  void OnLinkDown(ports::LinkId link, const absl::Status&) override {
    if (link == link_) link_ = 0;
    ++links_down_;
  }

 private:
  static simports::SimTransportOptions Options(const std::string& name,
                                               uint64_t incarnation) {
    simports::SimTransportOptions options;
    options.node = NodeId(name);
    options.incarnation = incarnation;
    options.address = name + ":1";
    return options;
  }

  simports::SimLoop loop_;
  simports::SimTransport transport_;
  ports::LinkId link_ = 0;
  int64_t links_up_ = 0;
  int64_t links_down_ = 0;
  std::vector<ports::Frame> frames_;
};

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_RAW_PEER_H_
