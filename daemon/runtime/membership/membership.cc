#include "daemon/runtime/membership/membership.h"

#include <utility>

namespace dfl::runtime {

Membership::Membership(MembershipOptions options, ports::Loop& loop,
                       Links& links, ports::EventSink& events)
    : options_(std::move(options)),
      loop_(loop),
      links_(links),
      events_(events),
      facts_(options_.facts) {
  (void)links_;
  (void)events_;
  if (!options_.enabled) return;
  Member& self = members_[options_.self];
  self.incarnation.starts = options_.starts;
  self.facts = facts_;
  self.since = loop_.Now();
}

Membership::~Membership() = default;

void Membership::SetFacts(ports::MemberFacts facts) {
  facts_ = std::move(facts);
}
void Membership::SetNeighbours(std::vector<NodeId> /*neighbours*/) {}
void Membership::Leave() {}
void Membership::SetAnswer(int32_t /*topic*/, Answer /*answer*/) {}
void Membership::Ask(const NodeId& target, int32_t /*topic*/,
                     absl::Duration /*within*/,
                     std::function<void(absl::StatusOr<std::string>)> done) {
  loop_.Post([done = std::move(done), name = target.name()] {
    done(absl::NotFoundError(name));
  });
}
void Membership::SendPing(const NodeId& target, absl::Duration /*within*/,
                          std::function<void(absl::StatusOr<Ping>)> done) {
  loop_.Post([done = std::move(done), name = target.name()] {
    done(absl::NotFoundError(name));
  });
}

void Membership::OnFrame(const NodeId&, ports::ProbeFrame) {}
void Membership::OnFrame(const NodeId&, ports::ProbeAckFrame) {}
void Membership::OnFrame(const NodeId&, ports::MembersFrame) {}
void Membership::OnFrame(const NodeId&, ports::MembersDigestFrame) {}
void Membership::OnFrame(const NodeId&, ports::QueryFrame) {}
void Membership::OnFrame(const NodeId&, ports::QueryPartFrame) {}

void Membership::OnPeerUp(const NodeId&, bool) {}
void Membership::OnPeerDown(const NodeId&, const absl::Status&) {}
void Membership::OnPeerWritable(const NodeId&) {}
void Membership::OnAddressFailed(const std::string&) {}

}  // namespace dfl::runtime
