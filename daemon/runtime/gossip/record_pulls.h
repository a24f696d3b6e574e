// Fetches from neighbours the records that they announce: which one from whom,
// and how much a neighbour may cost that sends nonsense or nothing.
//
//   Offered --what is wanted--> RecordWant ... OnPart ... --> a whole record
//
// Bounds
//   Of one peer, one record is under way; of all, 4. Of one record, 2 copies.
//   A second copy is fetched when the first takes longer than 5 s, so that no
//   peer can keep a record back by sending it slowly.
//   What is kept of a record is what has come of it, not what was announced.
//   A peer that is silent for 10 s, or slower than 64 KiB/s in all, is given
//   up. So is one that sends wrong parts. It is then asked for nothing for 1 s,
//   and twice as long each further time, at most 10 min.
//   Of one peer 1024 announcements are kept.
//
// What one peer sent in vain is not asked of it again, but of others it is: the
// name of a record does not bind who sends it, and a peer that spoils a record
// must not keep it from us.
//
// Loop only.
#ifndef DFL_RUNTIME_GOSSIP_RECORD_PULLS_H_
#define DFL_RUNTIME_GOSSIP_RECORD_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

class RecordPulls {
 public:
  static constexpr int kMaxPulls = 4;
  static constexpr size_t kMaxOffers = 1024;

  // A record that has come whole; nobody has looked into it.
  struct Whole {
    ports::RecordId id;
    std::string bytes;
  };

  // `wanted`: whether a record of that name would change something. Both
  // references and what `wanted` uses must outlive it.
  RecordPulls(ports::Loop& loop, Links& links,
              std::function<bool(const ports::RecordId&)> wanted);
  ~RecordPulls();
  RecordPulls(const RecordPulls&) = delete;
  RecordPulls& operator=(const RecordPulls&) = delete;

  void OnPeerUp(const NodeId& peer);
  void OnPeerDown(const NodeId& peer);

  // `peer` announces records. Returns false when it announces too many at once;
  // those are dropped.
  bool Offered(const NodeId& peer, std::vector<ports::RecordId> records);

  // A part came. Those that nobody waits for are dropped.
  // Errors: INVALID_ARGUMENT when it does not fit what was asked for; the peer
  // is given up for a while.
  absl::StatusOr<std::optional<Whole>> OnPart(const NodeId& peer,
                                              ports::RecordPart part);

  // What the caller says of a whole record, always.
  void Taken(const NodeId& peer);
  void Refused(const NodeId& peer, const ports::RecordId& id);
  // It is in order and changes nothing.
  void Useless(const NodeId& peer, const ports::RecordId& id);
  // It could not be stored: the same is tried again after `pause`.
  void Postponed(const NodeId& peer, absl::Duration pause);

  // What was refused may be in order now.
  void ForgetRefusals();

  // For tests of its bounds.
  int under_way() const { return under_way_; }
  size_t offers() const;

 private:
  struct Pull {
    ports::RecordId id;
    absl::Time since;
    absl::Time heard;
    int64_t total = 0;  // 0: not told yet
    int64_t asked = 0;  // all parts that begin before it were asked for
    std::string bytes;
  };
  struct Peer {
    bool up = false;
    // By kind, the largest first, so that bans come before plans.
    std::map<std::pair<int32_t, std::string>, ports::RecordId, std::greater<>>
        offers;
    std::optional<Pull> pull;
    std::deque<std::string> settled;  // hashes that it is not asked for
    int64_t strikes = 0;
    absl::Time not_before = absl::InfinitePast();
  };

  static std::pair<int32_t, std::string> KeyOf(const ports::RecordId& id) {
    return {id.kind, id.hash};
  }
  Peer& PeerOf(const NodeId& peer);
  // Begins to fetch from `peer`, if there is anything and it may be asked.
  void Start(const NodeId& id, Peer& peer);
  void StartAll();
  bool MayStart(const Peer& peer) const;
  std::optional<ports::RecordId> Choose(Peer& peer);
  bool MayPull(const ports::RecordId& id) const;
  // Asks for as many parts ahead as may be under way.
  void AskOn(const NodeId& id, Pull& pull);
  void End(Peer& peer);
  void Strike(Peer& peer);
  void Settle(Peer& peer, const ports::RecordId& id);
  static absl::Status CheckPart(const Pull& pull,
                                const ports::RecordPart& part);
  void Tick();
  void KeepTicking();

  ports::Loop& loop_;
  Links& links_;
  const std::function<bool(const ports::RecordId&)> wanted_;
  std::map<NodeId, Peer> peers_;
  int under_way_ = 0;
  ports::TimerId timer_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GOSSIP_RECORD_PULLS_H_
