// Where other members were when the daemon ran last: candidates in the first
// minutes after a start. So a box finds its network again when those that its
// settings name are gone, or are somewhere else by now.
#ifndef DFL_APP_NETWORK_KNOWN_MEMBERS_H_
#define DFL_APP_NETWORK_KNOWN_MEMBERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/ports/files.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/membership/member_table.h"

namespace dfl::app {

// On the loop, but for the constructor.
class KnownMembers {
 public:
  // In the state directory: one host:port a line, as in discovery.file.
  static constexpr char kFile[] = "members";
  // Of so many members the addresses are kept.
  static constexpr size_t kMost = 32;
  // The members of the last run are candidates for so long, and until somebody
  // is there.
  static constexpr absl::Duration kStart = absl::Minutes(10);
  // A change is written after the first of these, and not before the second
  // since the last one: disks of edge boxes wear out.
  static constexpr absl::Duration kSettle = absl::Seconds(5);
  static constexpr absl::Duration kPause = absl::Minutes(5);

  // `candidates` is given what is tried now, and nothing once that is over;
  // `warn` hears of a disk that fails. All must outlive it, and what it gives
  // to `worker`.
  KnownMembers(NodeId self, ports::Files& files, ports::Loop& loop,
               ports::Worker& worker,
               std::function<void(std::vector<std::string>)> candidates,
               std::function<void(const std::string&)> warn);

  // Reads the file and offers what it says. A file that is missing, torn or too
  // large says nothing. Once.
  void Start();

  // Writes the addresses of those who are present, if there are any. Often;
  // `changes` is that of the table.
  void Look(const std::map<NodeId, runtime::Member>& members, uint64_t changes);

 private:
  std::string TextOf(const std::map<NodeId, runtime::Member>& members) const;
  void Write();

  const NodeId self_;
  ports::Files& files_;
  ports::Loop& loop_;
  ports::Worker& worker_;
  const std::function<void(std::vector<std::string>)> candidates_;
  const std::function<void(const std::string&)> warn_;
  bool offered_ = false;
  absl::Time offered_until_;
  uint64_t seen_ = ~uint64_t{0};  // changes, at the last look
  std::string text_;              // what is to be on disk
  std::string on_disk_;
  absl::Time due_ = absl::InfiniteFuture();
  absl::Time written_ = absl::InfinitePast();
  bool writing_ = false;
};

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_KNOWN_MEMBERS_H_
