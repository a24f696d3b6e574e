#include "daemon/exchange/link_upkeep.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/exchange/link_errors.h"
#include "daemon/exchange/lobby.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

// While nothing has changed: certificates expire, and failed renewals are tried
// again.
constexpr absl::Duration kRecheckEvery = absl::Seconds(5);

// Faults that another certificate of the same peer may cure.
bool IsCurable(tls::PeerFault fault) {
  return fault == tls::PeerFault::kExpired ||
         fault == tls::PeerFault::kUnknownAuthority;
}

}  // namespace

LinkUpkeep::LinkUpkeep(ports::Loop& loop, const GrpcTransportOptions& options,
                       const PeerGate& gate,
                       std::shared_ptr<CallRegistry> registry,
                       std::function<void(StreamId)> wake, EndLink end)
    : loop_(loop),
      options_(options),
      gate_(gate),
      registry_(std::move(registry)),
      wake_(std::move(wake)),
      end_(std::move(end)) {}

void LinkUpkeep::Add(LinkId id, Link link) {
  if (gate_.secured()) links_[id] = std::move(link);
}

void LinkUpkeep::Remove(LinkId id) {
  if (links_.erase(id) == 0) return;
  for (const auto& [stream, renewal] : renewals_) {
    if (renewal.link == id) {
      Take(stream);
      return;
    }
  }
}

bool LinkUpkeep::IsRenewing(LinkId id) const {
  for (const auto& [stream, renewal] : renewals_) {
    if (renewal.link == id) return true;
  }
  return false;
}

void LinkUpkeep::Recheck(absl::Time now) {
  const int64_t generation = gate_.generation();
  const absl::Duration since = now - checked_at_;
  if (generation == checked_generation_ && since >= absl::ZeroDuration() &&
      since < kRecheckEvery) {
    return;
  }
  checked_generation_ = generation;
  checked_at_ = now;
  std::vector<LinkId> ids;
  for (const auto& [id, link] : links_) ids.push_back(id);
  // Ending one may end others.
  for (const LinkId id : ids) {
    if (links_.count(id) > 0) RecheckOne(id, now);
  }
}

void LinkUpkeep::RecheckOne(LinkId id, absl::Time now) {
  const Link& link = links_.at(id);
  const bool dialled = !link.dialled.empty();
  const tls::PeerVerdict verdict = gate_.Recheck(link.certificates, now);
  if (verdict.ok()) {
    if (dialled && link.shown != gate_.shown() && !IsRenewing(id)) {
      StartRenewal(id, absl::OkStatus());
    }
    return;
  }
  const absl::Status reason = NotAdmitted(link.peer, verdict.text);
  if (!dialled || !IsCurable(verdict.fault)) {
    end_(id, reason);
    return;
  }
  for (auto& [stream, renewal] : renewals_) {
    if (renewal.link == id) {
      renewal.otherwise = reason;
      return;
    }
  }
  StartRenewal(id, reason);
}

void LinkUpkeep::StartRenewal(LinkId id, const absl::Status& otherwise) {
  const Link& link = links_.at(id);
  Renewal renewal;
  renewal.link = id;
  renewal.refusal = std::make_shared<DialRefusal>();
  renewal.shown = gate_.shown();
  renewal.otherwise = otherwise;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      gate_.Connect(link.dialled, ChannelArguments(options_), renewal.refusal);
  if (channel.ok()) {
    renewal.channel = *std::move(channel);
    renewal.stream =
        DialControl(registry_, renewal.channel,
                    gate_.MakeHello(options_.self, link.nonce), wake_);
  }
  if (renewal.stream == nullptr) {
    if (!otherwise.ok()) end_(id, otherwise);
    return;
  }
  const StreamId stream = renewal.stream->id();
  renewal.timer =
      loop_.After(options_.dial_timeout, [this, open = open_, stream] {
        if (*open) Fail(stream, absl::DeadlineExceededError("no answer"));
      });
  renewals_[stream] = std::move(renewal);
}

bool LinkUpkeep::Renew(const ports::PeerIdentity& peer, uint64_t nonce,
                       const PeerCertificates& certificates) {
  for (auto& [id, link] : links_) {
    if (link.nonce != nonce || !link.dialled.empty() ||
        !SameProcess(link.peer, peer)) {
      continue;
    }
    link.certificates = certificates;
    return true;
  }
  return false;
}

int64_t LinkUpkeep::unrenewed() const {
  const std::string shown = gate_.shown();
  int64_t count = 0;
  for (const auto& [id, link] : links_) {
    if (!link.dialled.empty() && link.shown != shown) ++count;
  }
  return count;
}

std::shared_ptr<Stream> LinkUpkeep::Find(StreamId id) const {
  const auto found = renewals_.find(id);
  return found == renewals_.end() ? nullptr : found->second.stream;
}

void LinkUpkeep::OnEvent(StreamId id, const Stream::Event& event) {
  const auto* greeting = std::get_if<Greeting>(&event);
  if (greeting == nullptr) {
    const auto* closed = std::get_if<Stream::Closed>(&event);
    Fail(id, closed != nullptr
                 ? closed->reason
                 : absl::InvalidArgumentError("there is no hello"));
    return;
  }
  Link& link = links_.at(renewals_.at(id).link);
  const absl::StatusOr<ports::PeerIdentity> peer =
      gate_.Admit(*greeting, absl::Now());
  if (!peer.ok()) {
    Fail(id, peer.status());
  } else if (greeting->hello.link_nonce() != link.nonce ||
             !SameProcess(*peer, link.peer)) {
    Fail(id, absl::FailedPreconditionError("another process answers there"));
  } else {
    link.certificates = greeting->certificates;
    link.shown = renewals_.at(id).shown;
    Take(id);
  }
}

LinkUpkeep::Renewal LinkUpkeep::Take(StreamId id) {
  const auto found = renewals_.find(id);
  Renewal renewal = std::move(found->second);
  renewals_.erase(found);
  loop_.Cancel(renewal.timer);
  renewal.stream->Stop(absl::CancelledError("renewed"));
  return renewal;
}

void LinkUpkeep::Fail(StreamId id, const absl::Status& why) {
  const Renewal renewal = Take(id);
  if (renewal.otherwise.ok()) return;
  const absl::Status cause = HandshakeError(why, renewal.refusal->text());
  end_(renewal.link,
       absl::Status(
           renewal.otherwise.code(),
           absl::StrCat(renewal.otherwise.message(),
                        "; asked for a newer certificate: ", cause.message())));
}

void LinkUpkeep::Close() {
  *open_ = false;
  links_.clear();
  renewals_.clear();
}

}  // namespace dfl::exchange
