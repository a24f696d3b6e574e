// Who makes a call on the control service, and what they may do.
#ifndef DFL_CONTROL_CALLER_H_
#define DFL_CONTROL_CALLER_H_

#include <string>

namespace dfl::control {

// As in control.proto; each role may do what those before it may.
enum class Role { kNone = 0, kViewer = 1, kOperator = 2, kAdmin = 3 };

// "nobody", "viewer", "operator", "admin".
inline const char* Name(Role role) {
  switch (role) {
    case Role::kNone:
      return "nobody";
    case Role::kViewer:
      return "viewer";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
  }
  return "nobody";
}

struct Caller {
  // For people and the audit log: "uid 1000 (pid 4711)", the identity
  // "spiffe://plant-4/operator/alice at 10.0.0.7:51234", or the address alone
  // where nobody is authenticated.
  std::string name;
  Role role = Role::kNone;
  // True on the unix socket.
  bool local = false;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_CALLER_H_
