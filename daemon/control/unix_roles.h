// What users of this machine may do on the unix socket, by user and group.
//
// The setting `admins` names users, as a name or number, and groups, as
// "@group"; without it admins are the daemon's own user and the members of its
// group. Root is always an admin, for it may read and change the daemon anyway.
// `viewers` names those who may only read. All others have no role.
#ifndef DFL_CONTROL_UNIX_ROLES_H_
#define DFL_CONTROL_UNIX_ROLES_H_

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/control/caller.h"

namespace dfl::control {

// A process at the other end of a unix socket, as it was when it connected.
struct UnixPeer {
  uid_t user = 0;
  gid_t group = 0;
  pid_t process = 0;
  std::vector<gid_t> groups;  // beside `group`
};

class UnixRoles {
 public:
  // `daemon` is the process that listens.
  // Errors: INVALID_ARGUMENT "control.admins: ..." or "control.viewers: ..."
  // for a name that this machine does not know, and for an empty one.
  static absl::StatusOr<UnixRoles> Resolve(
      const std::vector<std::string>& admins,
      const std::vector<std::string>& viewers, const UnixPeer& daemon);

  Role RoleOf(const UnixPeer& peer) const;

 private:
  struct People {
    bool Has(const UnixPeer& peer) const;
    std::set<uid_t> users;
    std::set<gid_t> groups;
  };
  static absl::StatusOr<People> Parse(const std::string& key,
                                      const std::vector<std::string>& names);

  People admins_;
  People viewers_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_UNIX_ROLES_H_
