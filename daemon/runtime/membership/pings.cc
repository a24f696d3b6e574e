#include "daemon/runtime/membership/pings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/membership/membership.h"

namespace dfl::runtime {

namespace {

// Links over which the holder of a name is asked.
constexpr size_t kWide = 3;

}  // namespace

Pings::Pings(NodeId self, ports::Loop& loop, Routes& routes,
             std::function<const Member*(const NodeId&)> find)
    : self_(std::move(self)),
      loop_(loop),
      routes_(routes),
      find_(std::move(find)) {}

Pings::~Pings() {
  *open_ = false;
  for (const auto& [number, pending] : pending_) {
    loop_.Cancel(pending.again);
    loop_.Cancel(pending.end);
  }
}

void Pings::Send(const NodeId& target, absl::Duration within,
                 std::function<void(absl::StatusOr<Ping>)> done) {
  Start(target, within, /*wide=*/false,
        [done = std::move(done)](const absl::StatusOr<Ack>& ack) {
          if (ack.ok()) {
            done(ack->ping);
          } else {
            done(ack.status());
          }
        });
}

uint64_t Pings::IncarnationOf(const NodeId& node) const {
  const Member* member = find_(node);
  return member != nullptr && member->present() ? member->facts.memory : 0;
}

void Pings::AskIncarnation(const NodeId& node, absl::Duration within,
                           std::function<void(uint64_t)> done) {
  Start(node, within, /*wide=*/true,
        [done = std::move(done)](const absl::StatusOr<Ack>& ack) {
          done(ack.ok() ? ack->memory : 0);
        });
}

void Pings::Start(const NodeId& target, absl::Duration within, bool wide,
                  Done done) {
  const auto end_at_once = [&](absl::StatusOr<Ack> result) {
    loop_.Post(
        [open = open_, done = std::move(done), result = std::move(result)] {
          if (*open) done(result);
        });
  };
  const Member* member = find_(target);
  if (member == nullptr) {
    end_at_once(absl::NotFoundError(
        absl::StrCat("no member ", target.name(), " is known")));
    return;
  }
  if (target == self_) {
    end_at_once(Ack{.ping = {}, .memory = member->facts.memory});
    return;
  }
  if (pending_.size() >= kMostUnderWay) {
    end_at_once(absl::ResourceExhaustedError(absl::StrCat(
        pending_.size(), " probes are under way; try again later")));
    return;
  }
  const uint64_t number = ++last_number_ | kNumberBit;
  Pending& pending = pending_[number];
  pending.target = target;
  pending.sent = loop_.Now();
  pending.within = within;
  pending.wide = wide;
  pending.done = std::move(done);
  if (absl::Status sent = SendProbe(number, pending); !sent.ok()) {
    Finish(number, std::move(sent));
    return;
  }
  pending.again = loop_.After(within / 2, [this, number] {
    const auto it = pending_.find(number);
    if (it == pending_.end()) return;
    it->second.again = 0;
    (void)SendProbe(number, it->second);
  });
  pending.end = loop_.After(within, [this, number] {
    const auto it = pending_.find(number);
    if (it == pending_.end()) return;
    Finish(number, absl::DeadlineExceededError(absl::StrCat(
                       it->second.target.name(), " did not answer within ",
                       absl::FormatDuration(it->second.within))));
  });
}

absl::Status Pings::SendProbe(uint64_t number, Pending& pending) {
  ports::ProbeFrame probe;
  probe.route = {.origin = self_, .target = pending.target};
  probe.number = number;
  absl::Status sent = routes_.Send(probe);
  if (!pending.wide) return sent;
  // Others each time, for some may be no way to it.
  const size_t first = number + kWide * pending.tries++;
  const std::vector<NodeId> linked = routes_.LinkedPeers();
  for (size_t i = 0; i < std::min(kWide, linked.size()); ++i) {
    const size_t at = (first + i) % linked.size();
    if (routes_.SendVia(linked[at], probe).ok()) sent = absl::OkStatus();
  }
  return sent;
}

bool Pings::OnAck(const ports::ProbeAckFrame& frame) {
  if ((frame.number & kNumberBit) == 0) return false;
  const auto it = pending_.find(frame.number);
  if (it == pending_.end() || frame.receipt ||
      frame.route.origin != it->second.target) {
    return true;
  }
  Finish(frame.number, Ack{.ping = {.round_trip = loop_.Now() - it->second.sent,
                                    .hops = frame.route.hops + 1},
                           .memory = frame.memory});
  return true;
}

void Pings::Finish(uint64_t number, absl::StatusOr<Ack> result) {
  const auto it = pending_.find(number);
  Pending pending = std::move(it->second);
  pending_.erase(it);
  loop_.Cancel(pending.again);
  loop_.Cancel(pending.end);
  loop_.Post([open = open_, done = std::move(pending.done),
              result = std::move(result)] {
    if (*open) done(result);
  });
}

}  // namespace dfl::runtime
