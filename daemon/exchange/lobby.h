// Streams that peers opened and that are not part of a link yet. A peer that
// dials opens a Control and a Bulk stream on one connection and says Hello on
// both, with the same identity and nonce; the two then leave as a pair.
#ifndef DFL_EXCHANGE_LOBBY_H_
#define DFL_EXCHANGE_LOBBY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/exchange/stream.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"

namespace dfl::exchange {

// Whether both are one daemon since one start.
bool SameProcess(const ports::PeerIdentity& a, const ports::PeerIdentity& b);

// Loop only.
class Lobby {
 public:
  struct Pair {
    std::shared_ptr<Stream> streams[2];  // by StreamKind
    ports::PeerIdentity peer;
    uint64_t nonce = 0;
  };

  // A stream may wait for `patience`. `loop` must outlive the lobby.
  Lobby(ports::Loop& loop, absl::Duration patience)
      : loop_(loop), patience_(patience) {}
  ~Lobby() { Close(); }
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  // `stream` waits for its Hello and its other half. It is refused with
  // DEADLINE_EXCEEDED when they take too long. `remote` names its connection.
  void Enter(std::shared_ptr<Stream> stream, const std::string& remote);

  // Null: no such stream waits here.
  std::shared_ptr<Stream> Find(StreamId id) const;

  // `peer` said Hello on stream `id`, which waits here. Returns the pair if the
  // other half said the same before. A second stream of the same kind is
  // refused with INVALID_ARGUMENT.
  std::optional<Pair> Greet(StreamId id, const ports::PeerIdentity& peer,
                            uint64_t nonce);

  // Ends the stream with `reason`; an unknown one is ignored.
  void Refuse(StreamId id, const absl::Status& reason);

  // Forgets all streams without ending them; no timer fires from here on. May
  // be called on any thread once the loop has stopped.
  void Close();

 private:
  struct Guest {
    std::shared_ptr<Stream> stream;
    std::string remote;
    ports::TimerId timer = 0;
    bool greeted = false;
    // Once it is greeted:
    ports::PeerIdentity peer;
    uint64_t nonce = 0;
  };

  // Takes a guest out, which is here.
  std::shared_ptr<Stream> Remove(StreamId id);

  ports::Loop& loop_;
  const absl::Duration patience_;
  std::map<StreamId, Guest> guests_;
  // False: timers find nothing any more.
  const std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace dfl::exchange

#endif  // DFL_EXCHANGE_LOBBY_H_
