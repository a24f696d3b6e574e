// Which members a call is about: MemberSelection of control.proto.
#ifndef DFL_CONTROL_MEMBER_SELECTION_H_
#define DFL_CONTROL_MEMBER_SELECTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/control/backend.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

struct SelectedMember {
  MemberInfo member;
  bool by_name = false;  // and not only by a label, or as one of all
};

// Those of `members` that `selection` means, in their order; of an empty
// selection all.
// Errors: NOT_FOUND for the first name or label that means nobody, with what is
// near it; INVALID_ARGUMENT for a label that is no "key=value", and for more
// names or labels than control.proto allows.
absl::StatusOr<std::vector<SelectedMember>> SelectMembers(
    const std::vector<MemberInfo>& members,
    const dfl::control::v1::MemberSelection& selection);

}  // namespace dfl::control

#endif  // DFL_CONTROL_MEMBER_SELECTION_H_
