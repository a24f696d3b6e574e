// Daemons that ask for the link of a peer of their name, in another
// incarnation: that peer after a restart, or another daemon, as a cloned image
// makes one. The linked one is asked whether it lives. See links.h.
#ifndef DFL_RUNTIME_LINKS_RIVALS_H_
#define DFL_RUNTIME_LINKS_RIVALS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"

namespace dfl::runtime {

// Loop only. It holds an entry for each linked peer that has had a rival.
class Rivals {
 public:
  // `ask` puts the question to a linked peer, which has `within` to answer; to
  // one that does not, `end` is done with the reason. All must outlive it.
  Rivals(absl::Duration within, ports::Loop& loop, ports::EventSink& events,
         std::function<void(const NodeId&)> ask,
         std::function<void(const NodeId&, const absl::Status&)> end)
      : within_(within),
        loop_(loop),
        events_(events),
        ask_(std::move(ask)),
        end_(std::move(end)) {}
  ~Rivals() {
    for (const auto& [node, entry] : entries_) loop_.Cancel(entry.timer);
  }
  Rivals(const Rivals&) = delete;
  Rivals& operator=(const Rivals&) = delete;

  // Why `newcomer` gets no link now; `linked` is the incarnation that has it.
  // UNAVAILABLE: that one is being asked. FAILED_PRECONDITION: it has answered.
  absl::Status Refuse(uint64_t linked, const ports::PeerIdentity& newcomer) {
    const NodeId node = newcomer.node;
    Entry& entry = entries_[node];
    if (entry.timer == 0) {
      ask_(node);
      entry.timer =
          loop_.After(within_, [this, node, rival = newcomer.incarnation] {
            entries_[node].timer = 0;
            entries_[node].answered = false;
            end_(node, absl::UnavailableError(absl::StrFormat(
                           "it is silent while another incarnation (%016x) "
                           "asks for its link",
                           rival)));
          });
    }
    if (!entry.answered) {
      return absl::UnavailableError(absl::StrFormat(
          "a daemon named %s (incarnation %016x) is still linked, and is being "
          "asked whether it lives; try again",
          node.name(), linked));
    }
    entry.text = absl::StrFormat(
        "another daemon of this name, incarnation %016x%s%s, asks for its "
        "link: a cloned image? give each its own name",
        newcomer.incarnation, newcomer.advertised.empty() ? "" : " at ",
        newcomer.advertised);
    if (std::exchange(entry.told, newcomer.incarnation) !=
        newcomer.incarnation) {
      events_.Report(ports::SecurityNote{
          true, absl::StrCat(node.name(), " is linked and answers, and ",
                             entry.text)});
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "another daemon of this name (%s), incarnation %016x, is linked and "
        "answers: a cloned image? give each its own name",
        node.name(), linked));
  }

  // A frame of a linked peer has come: it lives.
  void Heard(const NodeId& node) {
    if (entries_.empty()) return;
    const auto found = entries_.find(node);
    if (found == entries_.end() || found->second.timer == 0) return;
    loop_.Cancel(std::exchange(found->second.timer, 0));
    found->second.answered = true;
  }

  // The link of `node` is gone.
  void End(const NodeId& node) {
    const auto found = entries_.find(node);
    if (found == entries_.end()) return;
    loop_.Cancel(found->second.timer);
    entries_.erase(found);
  }

  // What is known of another daemon that asks for the link of `node`; "": none.
  std::string Text(const NodeId& node) const {
    const auto found = entries_.find(node);
    return found == entries_.end() ? "" : found->second.text;
  }

 private:
  struct Entry {
    ports::TimerId timer = 0;  // of the question
    bool answered = false;     // the last one
    uint64_t told = 0;         // the newcomer that was reported last
    std::string text;
  };

  const absl::Duration within_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  const std::function<void(const NodeId&)> ask_;
  const std::function<void(const NodeId&, const absl::Status&)> end_;
  std::map<NodeId, Entry> entries_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_RIVALS_H_
