// What mass wants to know of members that may not be linked: a partner that has
// started again may have lost what it held, and that goes for those, too, with
// which mass was exchanged before the graph changed.
#ifndef DFL_RUNTIME_MASS_MEMBERS_H_
#define DFL_RUNTIME_MASS_MEMBERS_H_

#include <cstdint>
#include <optional>
#include <set>

#include "daemon/base/ids.h"

namespace dfl::runtime {

// LinkedNode implements it by membership. Loop only.
class MassMembers {
 public:
  virtual ~MassMembers() = default;
  // Of a member that is thought alive, which life it is in, as it says itself
  // (ports::PeerIdentity::incarnation); nullopt: of any other.
  virtual std::optional<uint64_t> MemoryOf(const NodeId& node) const = 0;
  // With whom a link is needed until the next call, so that books can be
  // compared.
  virtual void Meet(std::set<NodeId> nodes) = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MASS_MEMBERS_H_
