// The peers that the node dials: those of the settings, and those that an
// operator added and that are kept over restarts. A name stands for all of its
// addresses.
#ifndef DFL_APP_ADDRESS_BOOK_H_
#define DFL_APP_ADDRESS_BOOK_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/base/ids.h"
#include "daemon/control/backend.h"
#include "daemon/discovery/names.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// Thread-safe.
class AddressBook {
 public:
  // All must outlive it. `node` is touched on `loop` only. `settings` are
  // dialled by whoever builds the node. `names` resolves the peers, and what it
  // finds is dialled; null: the peers are dialled as they are.
  AddressBook(const std::vector<std::string>& settings, EventLoop& loop,
              runtime::Node& node, SharedKeeper& keeper,
              std::shared_ptr<discovery::NameList> names);

  // Dials what the keeper has from earlier starts.
  void DialKept() ABSL_LOCKS_EXCLUDED(mutex_);

  // The settings name these peers now: new ones are dialled, and those that
  // they named before are dialled no more. What an operator added stays.
  void SetSettings(const std::vector<std::string>& settings)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes over who answers where. On the loop.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // As control::Backend's Peers, AddPeer and RemovePeer.
  std::vector<control::PeerAddress> List() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Add(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Remove(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // False: it is there already.
  bool Insert(const std::string& address, const char* origin)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DialLater(const std::string& address);
  void HangUpLater(const std::string& address);
  // What is known of one of the addresses of `peer`; `linked` says by address
  // who is linked.
  void TakeOver(const std::string& address,
                const std::map<std::string, NodeId>& linked,
                control::PeerAddress& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UnknownAddress(const std::string& address) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EventLoop& loop_;
  runtime::Node& node_;
  SharedKeeper& keeper_;
  const std::shared_ptr<discovery::NameList> names_;
  absl::Mutex mutex_;
  std::map<std::string, control::PeerAddress> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_ADDRESS_BOOK_H_
