// Daemons that ask for a link under a name that another one holds, in another
// incarnation: the holder after a restart, or another daemon, as a cloned image
// or a copied state directory makes one. The holder is asked whether it lives,
// over its link, or through the network when it is linked elsewhere. See
// links.h.
#ifndef DFL_RUNTIME_LINKS_RIVALS_H_
#define DFL_RUNTIME_LINKS_RIVALS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"

namespace dfl::runtime {

// What the network knows of nodes that are linked elsewhere.
class DistantNodes {
 public:
  virtual ~DistantNodes() = default;

  // The incarnation of the live daemon of this name, as far as is known; 0: of
  // none.
  virtual uint64_t IncarnationOf(const NodeId& node) const = 0;

  // Asks the daemon of this name, wherever it is. `done` gets its incarnation,
  // or 0 when none has answered within `within`; it is called once, on the
  // loop, never from inside this call.
  virtual void AskIncarnation(const NodeId& node, absl::Duration within,
                              std::function<void(uint64_t)> done) = 0;
};

// Loop only. It holds an entry for each linked peer that has had a rival, and
// one for each of the last kMostDistant names that are held elsewhere.
class Rivals {
 public:
  static constexpr size_t kMostDistant = 256;
  // A name that its holder has not answered for is free for so long.
  static constexpr absl::Duration kFree = absl::Seconds(30);

  // `ask` puts the question to a linked peer, which has `within` to answer; to
  // one that does not, `end` is done with the reason. All must outlive it.
  Rivals(absl::Duration within, ports::Loop& loop, ports::EventSink& events,
         std::function<void(const NodeId&)> ask,
         std::function<void(const NodeId&, const absl::Status&)> end);
  ~Rivals();
  Rivals(const Rivals&) = delete;
  Rivals& operator=(const Rivals&) = delete;

  // Null: nobody is asked but who is linked. It must outlive this object, or be
  // taken back, and then calls no `done` any more.
  void SetDistant(DistantNodes* distant) { distant_ = distant; }

  // Why `newcomer` gets no link now; `linked` is the incarnation that has it.
  // UNAVAILABLE: that one is being asked. FAILED_PRECONDITION: it has answered.
  absl::Status Refuse(uint64_t linked, const ports::PeerIdentity& newcomer);

  // Whether `newcomer`, whose name is not linked here, may have a link; errors
  // as Refuse's.
  absl::Status Admit(const ports::PeerIdentity& newcomer);

  // A frame of a linked peer has come: it lives.
  void Heard(const NodeId& node);

  // The link of `node` is gone.
  void End(const NodeId& node);

  // What is known of another daemon that asks for the link of `node`; "": none.
  std::string Text(const NodeId& node) const;

 private:
  struct Entry {
    ports::TimerId timer = 0;  // of the question
    bool answered = false;     // the last one
    uint64_t told = 0;         // the newcomer that was reported last
    std::string text;
  };
  // Of a name that is held elsewhere.
  struct Distant {
    bool asking = false;
    bool answered = false;  // the last question
    uint64_t told = 0;      // as Entry's
    uint64_t silent = 0;    // the holder that did not answer
    absl::Time asked;
  };

  // Reports `newcomer` unless it is `told` already.
  void Tell(uint64_t& told, const ports::PeerIdentity& newcomer,
            const std::string& text);
  void AskDistant(const NodeId& node, uint64_t holder, uint64_t newcomer);
  void MakeRoom();

  const absl::Duration within_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  const std::function<void(const NodeId&)> ask_;
  const std::function<void(const NodeId&, const absl::Status&)> end_;
  DistantNodes* distant_ = nullptr;
  std::map<NodeId, Entry> entries_;
  std::map<NodeId, Distant> distants_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_RIVALS_H_
