#include "daemon/runtime/membership/routes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ports/frames.h"

namespace dfl::runtime {

namespace {

constexpr size_t kManyPurses = 512;

}  // namespace

Routes::Routes(NodeId self, ports::Loop& loop, Links& links,
               const Overlay& overlay, const RouteAllowance& allowance)
    : self_(std::move(self)),
      loop_(loop),
      links_(links),
      overlay_(overlay),
      allowance_(allowance) {}

std::vector<NodeId> Routes::LinkedPeers() const {
  std::vector<NodeId> linked;
  for (const auto& [node, peer] : links_.peers()) {
    if (peer.link != 0) linked.push_back(node);
  }
  return linked;
}

template <typename F>
absl::Status Routes::SendOwn(F frame) {
  const NodeId target = frame.route.target;
  const NodeId next = overlay_.NextHop(target, NodeId(), LinkedPeers());
  if (next.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no linked member leads to ", target.name()));
  }
  return links_.Send(next, std::move(frame));
}

template <typename F>
void Routes::Forward(const NodeId& from, F frame) {
  const int64_t bytes = ports::EncodedSize(ports::Frame(frame));
  if (frame.route.hops >= ports::kMaxHops || frame.route.origin == self_) {
    ++counts_.too_far;
    return;
  }
  ++frame.route.hops;
  std::vector<NodeId> linked = LinkedPeers();
  std::erase_if(
      linked, [&](const NodeId& node) { return !links_.HasRoom(node, bytes); });
  const NodeId next = overlay_.NextHop(frame.route.target, from, linked);
  if (next.empty() || !links_.Send(next, std::move(frame)).ok()) {
    ++counts_.no_way;
    return;
  }
  ++counts_.passed_on;
}

absl::Status Routes::SendVia(const NodeId& via, ports::ProbeFrame frame) {
  return links_.Send(via, std::move(frame));
}
absl::Status Routes::Send(ports::ProbeFrame frame) {
  return SendOwn(std::move(frame));
}
absl::Status Routes::Send(ports::QueryFrame frame) {
  return SendOwn(std::move(frame));
}

absl::Status Routes::SendBack(const NodeId& from, ports::ProbeAckFrame frame) {
  const NodeId target = frame.route.target;
  return links_.Send(links_.IsUp(from) ? from : target, std::move(frame));
}
absl::Status Routes::SendBack(const NodeId& from, ports::QueryPartFrame frame) {
  const NodeId target = frame.route.target;
  return links_.Send(links_.IsUp(target) ? target : from, std::move(frame));
}

template <typename F>
bool Routes::TakeOrForward(const NodeId& from, F& frame) {
  if (frame.route.target == self_) return true;
  if (Spend(from, ports::EncodedSize(ports::Frame(frame)))) {
    Forward(from, std::move(frame));
  }
  return false;
}

bool Routes::Take(const NodeId& from, ports::ProbeFrame& frame) {
  if (frame.route.target == self_) return true;
  if (!Spend(from, ports::EncodedSize(ports::Frame(frame)))) return false;
  if (frame.route.hops == 0 && frame.route.origin == from) {
    ports::ProbeAckFrame receipt;
    receipt.route = {.origin = self_, .target = from};
    receipt.number = frame.number;
    receipt.receipt = true;
    (void)links_.Send(from, std::move(receipt));
  }
  Forward(from, std::move(frame));
  return false;
}
bool Routes::Take(const NodeId& from, ports::ProbeAckFrame& frame) {
  return TakeOrForward(from, frame);
}
bool Routes::Take(const NodeId& from, ports::QueryFrame& frame) {
  return TakeOrForward(from, frame);
}
bool Routes::Take(const NodeId& from, ports::QueryPartFrame& frame) {
  return TakeOrForward(from, frame);
}

int64_t Routes::LeftOf(const Purse& purse) const {
  const double gained = absl::ToDoubleSeconds(loop_.Now() - purse.at) *
                        static_cast<double>(allowance_.each_second);
  const int64_t missing = allowance_.at_once - purse.left;
  return gained >= static_cast<double>(missing)
             ? allowance_.at_once
             : purse.left + static_cast<int64_t>(gained);
}

bool Routes::Spend(const NodeId& from, int64_t bytes) {
  if (purses_.size() >= kManyPurses) MakeRoom();
  const auto [it, added] = purses_.try_emplace(
      from, Purse{.left = allowance_.at_once, .at = loop_.Now()});
  Purse& purse = it->second;
  const int64_t price = std::max(bytes, RouteAllowance::kLeastFrame);
  const int64_t left = LeftOf(purse);
  if (left < price) {
    ++counts_.over_allowance;
    return false;
  }
  purse = Purse{.left = left - price, .at = loop_.Now()};
  return true;
}

void Routes::MakeRoom() {
  std::erase_if(purses_, [this](const auto& entry) {
    return LeftOf(entry.second) == allowance_.at_once;
  });
}

}  // namespace dfl::runtime
