#include "daemon/runtime/links/dialler.h"

#include <algorithm>
#include <utility>

namespace dfl::runtime {

namespace {

// After them the back-off is as long as it gets.
constexpr int64_t kManyFailures = 16;
// Where the answer is to come soon: tried again each 0.2 to 0.4 s.
constexpr int64_t kFewFailures = 2;

}  // namespace

Dialler::Dialler(const DiallerOptions& options, ports::Loop& loop,
                 ports::Transport& transport, ports::EventSink& events,
                 std::function<bool(const NodeId&)> is_up,
                 std::function<absl::Duration(const NodeId&)> shut_out)
    : options_(options),
      loop_(loop),
      transport_(transport),
      events_(events),
      is_up_(std::move(is_up)),
      shut_out_(std::move(shut_out)),
      rng_(DeriveSeed(options_.seed, "links")) {}

Dialler::~Dialler() {
  for (auto& [name, address] : addresses_) loop_.Cancel(address.timer);
}

absl::Duration Dialler::HoldOf(const Address& address) {
  absl::Duration hold = absl::InfiniteDuration();
  for (const auto& [owner, wanted] : address.claims) {
    hold = std::min(hold, wanted.hold);
  }
  return address.claims.empty() ? absl::ZeroDuration() : hold;
}

bool Dialler::Claim(const std::string& owner, const std::string& name,
                    const NodeId& node, absl::Duration hold) {
  Address& address = addresses_[name];
  const bool is_new = address.claims.empty();
  const absl::Duration before = HoldOf(address);
  if (address.node.empty()) address.node = node;
  const bool added =
      address.claims.insert_or_assign(owner, Wish{hold, !node.empty()}).second;
  // One that waits for its first dial may come earlier, and one that was not to
  // be dialled as its node is linked may be dialled now.
  if (is_new ||
      (added && node.empty() && !address.answered && !address.dialling &&
       (address.failures == 0 || address.timer == 0)) ||
      (address.failures == 0 && HoldOf(address) < before)) {
    DialIn(name, HoldOf(address));
  }
  return added;
}

std::optional<Dialler::Released> Dialler::Release(const std::string& owner,
                                                  const std::string& name) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end() || it->second.claims.erase(owner) == 0) {
    return std::nullopt;
  }
  Released released{.unclaimed = it->second.claims.empty(),
                    .node = it->second.node};
  if (released.unclaimed) {
    loop_.Cancel(it->second.timer);
    addresses_.erase(it);
  }
  return released;
}

bool Dialler::Satisfied(const Address& address) const {
  return !address.node.empty() && is_up_(address.node) &&
         (address.answered ||
          std::all_of(
              address.claims.begin(), address.claims.end(),
              [](const auto& claim) { return claim.second.names_node; }));
}

void Dialler::DialIn(const std::string& name, absl::Duration delay) {
  Address& address = addresses_.at(name);
  loop_.Cancel(std::exchange(address.timer, 0));
  if (delay <= absl::ZeroDuration()) {
    Dial(name);
    return;
  }
  address.timer = loop_.After(delay, [this, name] { Dial(name); });
}

void Dialler::Dial(const std::string& name) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end()) return;
  it->second.timer = 0;
  if (it->second.dialling || it->second.own || Satisfied(it->second)) return;
  const absl::Duration shut_out = shut_out_(it->second.node);
  if (shut_out > absl::ZeroDuration()) {
    DialIn(name, shut_out);
    return;
  }
  it->second.dialling = true;
  transport_.Dial(name);
}

void Dialler::DialLater(const std::string& name) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end()) return;
  Address& address = it->second;
  // first, first x 2, ... up to longest; half of it is jitter.
  absl::Duration backoff = options_.first_backoff;
  for (int64_t i = 1;
       i < address.failures && backoff < options_.longest_backoff; ++i) {
    backoff *= 2;
  }
  backoff = std::min(backoff, options_.longest_backoff);
  backoff = backoff / 2 + backoff / 2 * rng_.Uniform();
  DialIn(name, backoff + HoldOf(address));
}

bool Dialler::Failed(const std::string& name, const absl::Status& status) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end()) return false;
  Address& address = it->second;
  address.dialling = false;
  if (ports::IsThisNodeItself(status)) {
    address.own = true;
    address.node = NodeId();
    address.answered = false;
    address.last_error.clear();
    return true;
  }
  ++address.failures;
  if (ports::IsToBeTriedSoon(status)) {
    address.failures = std::min(address.failures, kFewFailures);
  }
  const std::string error(status.message());
  // One report a change of state, not one an attempt.
  if (error != address.last_error) {
    address.last_error = error;
    events_.Report(ports::PeerUnreachable{name, status});
  }
  DialLater(name);
  return true;
}

bool Dialler::Refused(const std::string& name, const absl::Status& status,
                      bool rarely) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end()) return false;
  it->second.node = NodeId();
  it->second.answered = false;
  if (rarely) {
    it->second.failures = std::max(it->second.failures, kManyFailures);
  }
  return Failed(name, status);
}

bool Dialler::Answered(const std::string& name, const NodeId& node) {
  const auto it = addresses_.find(name);
  if (it == addresses_.end()) return false;
  it->second.dialling = false;
  it->second.last_error.clear();
  it->second.node = node;
  it->second.answered = true;
  return true;
}

void Dialler::Lost(const NodeId& node, bool steady) {
  for (auto& [name, address] : addresses_) {
    if (address.node != node) continue;
    address.failures = steady ? 0 : address.failures + 1;
    if (!address.dialling) DialLater(name);
  }
}

}  // namespace dfl::runtime
