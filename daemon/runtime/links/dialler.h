// Dialler: which addresses are dialled, for whom, and when again.
//
// An address is dialled as long as somebody *claims* it: a person (by hand, or
// in the settings), membership for a link that should stand, discovery for a
// candidate. It is tried at once, or after the hold that a claim asks for, and
// again with a jittered, doubling back-off while nobody answers there. Nothing
// is dialled while the node that answers there is linked, whoever dialled.
//
// An address that turns out to be this node's own is no failure: it is not
// dialled again while it is claimed.
//
// Loop only. Part of Links.
#ifndef DFL_RUNTIME_LINKS_DIALLER_H_
#define DFL_RUNTIME_LINKS_DIALLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/ports/transport.h"

namespace dfl::runtime {

struct DiallerOptions {
  uint64_t seed = 1;  // of the jitter
  absl::Duration first_backoff = absl::Milliseconds(200);
  absl::Duration longest_backoff = absl::Seconds(10);
};

class Dialler {
 public:
  struct Wish {
    // How much later than at once.
    absl::Duration hold;
    // False: whoever answers there is wanted, and a member's word that it
    // would is not enough.
    bool names_node = false;
  };
  // What is known of one address that is dialled.
  struct Address {
    bool dialling = false;
    int64_t failures = 0;  // in a row, to connect or to stay connected
    ports::TimerId timer = 0;
    // Who answered there last, or who is thought to; may be empty.
    NodeId node;
    bool answered = false;  // the former
    std::string last_error;
    bool own = false;  // this node itself answers there
    // By who wants it dialled.
    std::map<std::string, Wish> claims;
  };

  // How a claim that was given back has left its address.
  struct Released {
    bool unclaimed = false;  // nobody else claims it: it is gone
    NodeId node;             // Address::node
  };

  // `is_up`: whether a node is linked. `shut_out`: how much longer it may not
  // be. All must outlive it.
  Dialler(const DiallerOptions& options, ports::Loop& loop,
          ports::Transport& transport, ports::EventSink& events,
          std::function<bool(const NodeId&)> is_up,
          std::function<absl::Duration(const NodeId&)> shut_out);
  ~Dialler();
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;

  // Addresses are called by their `name`, "host:port".

  // `owner` wants it dialled; `node` is thought to answer there, if it is not
  // empty. False: it claims that already, and only `hold` counts anew.
  bool Claim(const std::string& owner, const std::string& name,
             const NodeId& node, absl::Duration hold);
  // Null: `owner` does not claim it.
  std::optional<Released> Release(const std::string& owner,
                                  const std::string& name);

  // A dial has failed, or its link was not wanted, as `status` says. False:
  // nobody claims the address any more.
  bool Failed(const std::string& name, const absl::Status& status);
  // As Failed for a peer that has answered and is not who is wanted. `rarely`:
  // it sees each try, and is tried as rarely as possible from now on.
  bool Refused(const std::string& name, const absl::Status& status,
               bool rarely);
  // `node` answers at an address. False: nobody claims it any more.
  bool Answered(const std::string& name, const NodeId& node);
  // Dials it after the back-off.
  void DialLater(const std::string& name);

  // The link of `node` is gone. `steady`: it had been up for long enough.
  void Lost(const NodeId& node, bool steady);

  const std::map<std::string, Address>& addresses() const { return addresses_; }

 private:
  // What the claims ask for; the least of them.
  static absl::Duration HoldOf(const Address& address);
  // The address's peer is linked, so there is nothing to dial.
  bool Satisfied(const Address& address) const;
  void Dial(const std::string& name);
  void DialIn(const std::string& name, absl::Duration delay);

  const DiallerOptions options_;
  ports::Loop& loop_;
  ports::Transport& transport_;
  ports::EventSink& events_;
  const std::function<bool(const NodeId&)> is_up_;
  const std::function<absl::Duration(const NodeId&)> shut_out_;
  Rng rng_;
  std::map<std::string, Address> addresses_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_DIALLER_H_
