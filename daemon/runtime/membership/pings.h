// Pings: probes on demand of members anywhere in the network, for people and
// to learn whether the holder of a name lives.
//
// Their numbers have the top bit set, so that their acks are told from the
// failure detector's.
//
// Loop only.
#ifndef DFL_RUNTIME_MEMBERSHIP_PINGS_H_
#define DFL_RUNTIME_MEMBERSHIP_PINGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/links/rivals.h"
#include "daemon/runtime/membership/routes.h"

namespace dfl::runtime {

struct Member;

// How a probe on demand went.
struct Ping {
  absl::Duration round_trip;  // since it was first sent
  int32_t hops = 0;           // links on the way back
};

class Pings final : public DistantNodes {
 public:
  static constexpr uint64_t kNumberBit = uint64_t{1} << 63;
  static constexpr size_t kMostUnderWay = 256;

  // `find`: a member of this name; null: none is known. All must outlive it.
  Pings(NodeId self, ports::Loop& loop, Routes& routes,
        std::function<const Member*(const NodeId&)> find);
  // Calls no `done` any more.
  ~Pings() override;
  Pings(const Pings&) = delete;
  Pings& operator=(const Pings&) = delete;

  // As Membership::SendPing. A probe without an ack is sent again when half of
  // the time is over.
  void Send(const NodeId& target, absl::Duration within,
            std::function<void(absl::StatusOr<Ping>)> done);

  // An ack for this node. False: it is of no ping.
  bool OnAck(const ports::ProbeAckFrame& frame);

  // DistantNodes. The question goes over several links at once, for it matters
  // that a live holder is found.
  uint64_t IncarnationOf(const NodeId& node) const override;
  void AskIncarnation(const NodeId& node, absl::Duration within,
                      std::function<void(uint64_t)> done) override;

 private:
  struct Ack {
    Ping ping;
    uint64_t memory = 0;
  };
  using Done = std::function<void(absl::StatusOr<Ack>)>;
  struct Pending {
    NodeId target;
    absl::Time sent;
    absl::Duration within;
    bool wide = false;  // over several links
    size_t tries = 0;   // so far
    Done done;
    ports::TimerId again = 0;
    ports::TimerId end = 0;
  };

  void Start(const NodeId& target, absl::Duration within, bool wide, Done done);
  absl::Status SendProbe(uint64_t number, Pending& pending);
  // Ends the ping, and calls its `done` from the loop.
  void Finish(uint64_t number, absl::StatusOr<Ack> result);

  const NodeId self_;
  ports::Loop& loop_;
  Routes& routes_;
  const std::function<const Member*(const NodeId&)> find_;
  std::map<uint64_t, Pending> pending_;
  uint64_t last_number_ = 0;
  // False: tasks that are posted call nobody any more.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_PINGS_H_
