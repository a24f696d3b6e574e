#include "daemon/simports/sim_connections.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::simports {
namespace {

constexpr SimConnection::Stream kControl = SimConnection::kControl;
constexpr SimConnection::Stream kBulk = SimConnection::kBulk;

// How long `bytes` take at `rate`, in whole nanoseconds.
absl::Duration TransmissionTime(int64_t bytes, double rate) {
  if (rate <= 0) return absl::ZeroDuration();
  return absl::Nanoseconds(
      static_cast<int64_t>(static_cast<double>(bytes) * 1e9 / rate));
}

absl::Duration Uniform(absl::Duration bound, Rng& rng) {
  const int64_t nanos = absl::ToInt64Nanoseconds(bound);
  if (nanos <= 0) return absl::ZeroDuration();
  return absl::Nanoseconds(static_cast<int64_t>(rng.Below(nanos + 1)));
}

}  // namespace

SimConnections::SimConnections(SimScheduler& scheduler,
                               SimScheduler::OwnerId owner, SimHosts& hosts,
                               uint64_t seed)
    : scheduler_(scheduler),
      owner_(owner),
      hosts_(hosts),
      rng_(DeriveSeed(seed, "network")) {}

// Dialling.

void SimConnections::Open(SimTransport& from, SimTransport& to,
                          const std::string& address, SimRoute& there,
                          SimRoute& back, absl::Time answer) {
  const ConnectionId id = connections_.size();
  connections_.push_back(std::make_unique<Connection>());
  Connection& connection = *connections_.back();
  connection.id = id;
  connection.dialled_address = address;
  connection.ends[0].transport = from.id_;
  connection.ends[0].link = ++last_link_;
  connection.ends[0].route = &there;
  connection.ends[1].transport = to.id_;
  connection.ends[1].link = ++last_link_;
  connection.ends[1].route = &back;
  from.connections_.insert(id);
  to.connections_.insert(id);
  // Nothing arrives at the dialler before its link is up.
  for (absl::Time& arrival : connection.ends[1].last_arrival) arrival = answer;
  scheduler_.At(answer, owner_, [this, id] { FinishDial(id); });

  End& end = connection.ends[1];
  end.state = EndState::kUp;
  to.links_.emplace(end.link, std::make_pair(id, 1));
  Trace("up", end.link, 0);
  to.handler()->OnLinkUp(end.link, from.identity(), "");
}

void SimConnections::FinishDial(ConnectionId id) {
  Connection* connection = FindConnection(id);
  if (connection == nullptr) return;
  End& end = connection->ends[0];
  if (end.state != EndState::kPending) return;
  SimTransport* from = hosts_.Find(end.transport);
  const SimTransport* to = hosts_.Find(connection->ends[1].transport);
  if (from->handler() == nullptr || to == nullptr) return;
  end.state = EndState::kUp;
  from->links_.emplace(end.link, std::make_pair(id, 0));
  Trace("up", end.link, 0);
  from->handler()->OnLinkUp(end.link, to->identity(),
                            connection->dialled_address);
}

// Frames.

absl::Status SimConnections::Send(SimTransport& from, ports::LinkId link,
                                  ports::Frame frame) {
  const auto found = from.links_.find(link);
  if (found == from.links_.end()) {
    return absl::NotFoundError(absl::StrCat("link ", link, " is not up"));
  }
  if (absl::Status valid = ports::ValidateFrame(frame); !valid.ok()) {
    return valid;
  }
  const auto [id, index] = found->second;
  End& end = connections_[id]->ends[index];
  const Stream stream =
      std::holds_alternative<ports::Chunk>(frame) ? kBulk : kControl;
  const int64_t size = ports::EncodedSize(frame);
  const int64_t bound = from.max_queued_bytes() * (stream == kBulk ? 1 : 2);
  if (end.queued_bytes + size > bound) {
    end.refused = true;
    return absl::ResourceExhaustedError(
        absl::StrCat("link ", link, " has ", end.queued_bytes,
                     " bytes queued; at most ", bound, " are allowed"));
  }
  end.queued_bytes += size;
  end.queue[stream].push(SizedFrame{std::move(frame), size});
  Transmit(id, index);
  return absl::OkStatus();
}

int64_t SimConnections::UnsentBytes(const SimTransport& from,
                                    ports::LinkId link) const {
  const auto found = from.links_.find(link);
  if (found == from.links_.end()) return 0;
  const auto [id, index] = found->second;
  return connections_.at(id)->ends[index].queued_bytes;
}

void SimConnections::Transmit(ConnectionId id, int index) {
  Connection* connection = FindConnection(id);
  if (connection == nullptr) return;
  End& end = connection->ends[index];
  while (!end.transmitting && end.route->fault == SimRoute::Fault::kNone) {
    const Stream stream = end.queue[kControl].empty() ? kBulk : kControl;
    if (end.queue[stream].empty()) return;
    const absl::Duration time =
        TransmissionTime(end.queue[stream].front().size, end.route->path.rate);
    if (time == absl::ZeroDuration()) {
      Depart(id, index, stream, end);
      continue;
    }
    end.transmitting = true;
    scheduler_.After(time, owner_, [this, id, index, stream] {
      FrameLeft(id, index, stream);
    });
  }
}

void SimConnections::FrameLeft(ConnectionId id, int index, Stream stream) {
  Connection* connection = FindConnection(id);
  if (connection == nullptr) return;
  End& end = connection->ends[index];
  if (end.state == EndState::kClosed) return;
  end.transmitting = false;
  if (end.route->fault != SimRoute::Fault::kNone)
    return;  // sent again once healed
  Depart(id, index, stream, end);
  Transmit(id, index);
}

// The first frame of a queue is on its way.
void SimConnections::Depart(ConnectionId id, int index, Stream stream,
                            End& end) {
  SizedFrame frame = end.queue[stream].pop();
  end.queued_bytes -= frame.size;
  ++sent_.frames;
  sent_.bytes += frame.size;
  end.in_flight[stream].push(std::move(frame));
  absl::Time& last = end.last_arrival[stream];
  last = std::max(last, scheduler_.Now() + end.route->path.delay +
                            Uniform(end.route->path.jitter, rng_));
  // One number: what a task captures in two words needs no allocation.
  const uint64_t which = id << 2 | static_cast<uint64_t>(index << 1 | stream);
  scheduler_.At(last, owner_, [this, which] {
    Deliver(which >> 2, static_cast<int>(which >> 1 & 1),
            static_cast<Stream>(which & 1));
  });
  const SimTransport* sender = hosts_.Find(end.transport);
  if (!end.refused || end.queued_bytes >= sender->max_queued_bytes() / 2) {
    return;
  }
  end.refused = false;
  // In an event of its own: handlers may close the link.
  scheduler_.At(scheduler_.Now(), owner_, [this, id, index] {
    Connection* later = FindConnection(id);
    if (later == nullptr) return;
    const End& e = later->ends[index];
    if (e.state != EndState::kUp) return;
    ports::Transport::Handler* h = hosts_.Find(e.transport)->handler();
    if (h != nullptr) h->OnWritable(e.link);
  });
}

void SimConnections::Deliver(ConnectionId id, int index, Stream stream) {
  Connection* connection = FindConnection(id);
  if (connection == nullptr) return;
  End& from = connection->ends[index];
  const End& to = connection->ends[1 - index];
  if (from.in_flight[stream].empty()) return;
  SizedFrame frame = from.in_flight[stream].pop();
  SimRoute& route = *from.route;
  if (route.path.reset_probability > 0 &&
      rng_.Bernoulli(route.path.reset_probability)) {
    ResetConnection(*connection,
                    absl::UnavailableError("connection reset by peer"));
    return;
  }
  if (to.state != EndState::kUp) return;
  SimTransport* receiver = hosts_.Find(to.transport);
  if (receiver->handler() == nullptr) return;
  ++route.delivered.frames;
  route.delivered.bytes += frame.size;
  ++delivered_.frames;
  delivered_.bytes += frame.size;
  Trace(ports::FrameName(frame.frame), to.link, frame.size);
  receiver->handler()->OnFrame(to.link, std::move(frame.frame));
}

// Ends of links.

void SimConnections::Leave(SimTransport& process) {
  const SimTransportId id = process.id_;
  const ConnectionSet theirs = std::exchange(process.connections_, {});
  hosts_.Remove(id);
  for (const ConnectionId connection : theirs) {
    Connection* state = FindConnection(connection);
    for (int end = 0; end < 2; ++end) {
      if (state->ends[end].transport != id) continue;
      if (state->ends[end].state == EndState::kClosed) continue;
      CloseEnd(*state, end, absl::OkStatus());  // nobody is left to be told
      AnnounceClose(*state, end);
    }
    EraseIfClosed(connection);
  }
}

void SimConnections::Close(SimTransport& from, ports::LinkId link,
                           const absl::Status& reason) {
  const auto found = from.links_.find(link);
  if (found == from.links_.end()) return;
  const auto [id, index] = found->second;
  Connection& connection = *connections_[id];
  CloseEnd(connection, index, reason);
  AnnounceClose(connection, index);
}

void SimConnections::CloseEnd(Connection& connection, int index,
                              const absl::Status& reason) {
  End& end = connection.ends[index];
  if (end.state == EndState::kClosed) return;
  const bool was_up = end.state == EndState::kUp;
  end.state = EndState::kClosed;
  for (const Stream stream : {kControl, kBulk}) end.queue[stream].clear();
  end.queued_bytes = 0;
  SimTransport* transport = hosts_.Find(end.transport);
  if (transport == nullptr) return;
  if (!was_up) {
    if (index == 0) {
      hosts_.FailDial(
          end.transport, connection.dialled_address, scheduler_.Now(),
          absl::Status(reason.code(),
                       absl::StrCat("dialling ", connection.dialled_address,
                                    ": ", reason.message())));
    }
    return;
  }
  transport->links_.erase(end.link);
  scheduler_.At(scheduler_.Now(), owner_,
                [this, id = end.transport, link = end.link, reason] {
                  SimTransport* t = hosts_.Find(id);
                  if (t == nullptr || t->handler() == nullptr) return;
                  Trace("down", link, 0);
                  t->handler()->OnLinkDown(link, reason);
                });
}

void SimConnections::AnnounceClose(Connection& connection, int closed_end) {
  const End& closed = connection.ends[closed_end];
  // Behind a black hole the peer learns it from its keepalive, or when healed.
  if (closed.route->fault == SimRoute::Fault::kBlackHole) return;
  scheduler_.After(closed.route->path.delay, owner_,
                   [this, id = connection.id, other = 1 - closed_end] {
                     Connection* later = FindConnection(id);
                     if (later == nullptr) return;
                     CloseEnd(
                         *later, other,
                         absl::UnavailableError("the peer closed the link"));
                     EraseIfClosed(id);
                   });
}

void SimConnections::ResetConnection(Connection& connection,
                                     const absl::Status& reason) {
  const ConnectionId id = connection.id;
  CloseEnd(connection, 0, reason);
  CloseEnd(connection, 1, reason);
  EraseIfClosed(id);
}

void SimConnections::EraseIfClosed(ConnectionId id) {
  const Connection* connection = FindConnection(id);
  if (connection == nullptr) return;
  for (const End& end : connection->ends) {
    if (end.state != EndState::kClosed) return;
  }
  for (const End& end : connection->ends) {
    if (SimTransport* transport = hosts_.Find(end.transport)) {
      transport->connections_.erase(id);
    }
  }
  connections_[id].reset();
}

void SimConnections::Reset(const ConnectionSet& connections,
                           const absl::Status& reason) {
  for (const ConnectionId id : connections) {
    ResetConnection(*FindConnection(id), reason);
  }
}

// Each has an end at a process that is there, at one of the two hosts.
SimConnections::ConnectionSet SimConnections::Between(
    const SimRoute& there, const SimRoute& back) const {
  ConnectionSet between;
  for (const std::string& host : {there.from, there.to}) {
    const SimTransport* process = hosts_.FindAt(host);
    if (process == nullptr) continue;
    for (const ConnectionId id : process->connections_) {
      const SimRoute* route = connections_[id]->ends[0].route;
      if (route == &there || route == &back) between.insert(id);
    }
  }
  return between;
}

SimConnections::ConnectionSet SimConnections::Over(
    const SimRoute& route) const {
  ConnectionSet over;
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (connection != nullptr && (connection->ends[0].route == &route ||
                                  connection->ends[1].route == &route)) {
      over.insert(connection->id);
    }
  }
  return over;
}

void SimConnections::Revive(const ConnectionSet& connections) {
  for (const ConnectionId id : connections) {
    for (int end = 0; end < 2; ++end) {
      Connection* connection = FindConnection(id);
      if (connection->ends[end].state == EndState::kClosed) {
        AnnounceClose(*connection, end);
      } else {
        Transmit(id, end);
      }
    }
  }
}

void SimConnections::Trace(const char* what, ports::LinkId link, int64_t size) {
  TraceDigest& trace = scheduler_.trace();
  trace.Add(static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(scheduler_.Now() - absl::UnixEpoch())));
  trace.Add(what);
  trace.Add(link);
  trace.Add(static_cast<uint64_t>(size));
}

}  // namespace dfl::simports
