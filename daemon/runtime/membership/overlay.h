// Overlay: who should be linked with whom, so that everybody reaches everybody
// over a few links though each member has few.
//
// Names stand on a ring of 64-bit hashes. A member's fingers are the first
// members from 1/2, 1/4, 1/8 ... of the ring after it on, down to its own
// successor: about log2 N. Two members should be linked when one is a finger of
// the other, so each has about 2 log2 N links. Two that cannot be dialled are
// never paired: the finger of such a member moves on to the next that can.
//
// A frame goes to the linked member that is nearest before its target on the
// ring, which at least halves the rest of the way when all fingers are linked.
// A target that cannot be dialled is linked with the next one after it that
// can, so the frame goes there.
//
// All of it depends on the set of names alone, and a join or leave changes
// O(log N) pairs. Not thread-safe.
#ifndef DFL_RUNTIME_MEMBERSHIP_OVERLAY_H_
#define DFL_RUNTIME_MEMBERSHIP_OVERLAY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"

namespace dfl::runtime {

class Overlay {
 public:
  static uint64_t PositionOf(const NodeId& node);

  // Adds `node`, or changes whether it can be dialled. False: nothing new.
  bool Set(const NodeId& node, bool dialable);
  // False: it is not there.
  bool Remove(const NodeId& node);

  size_t size() const { return ring_.size(); }
  bool Has(const NodeId& node) const;

  // Sorted; empty for a node that is not there.
  std::vector<NodeId> FingersOf(const NodeId& node) const;
  // Who has `node` as a finger, or is a finger of it. Sorted.
  std::vector<NodeId> LinksOf(const NodeId& node) const;
  bool ShouldLink(const NodeId& a, const NodeId& b) const;

  // To whom of `linked` a frame for `target` goes that came from `from`, which
  // is empty for one's own. Empty: there is nobody, or the target is neither
  // linked nor known.
  NodeId NextHop(const NodeId& target, const NodeId& from,
                 absl::Span<const NodeId> linked) const;

 private:
  struct Place {
    uint64_t position = 0;
    NodeId node;
    bool dialable = false;

    friend bool operator<(const Place& a, const Place& b) {
      return a.position != b.position ? a.position < b.position
                                      : a.node < b.node;
    }
  };
  using Ring = std::vector<Place>;

  static size_t IndexOf(const Ring& ring, const NodeId& node);
  // The first place from `position` on; `ring` is not empty.
  static const Place& Successor(const Ring& ring, uint64_t position);
  // Calls `visit` for each place of `ring` whose finger at `distance` is the
  // member at `index` of `targets`.
  static void ForEachBefore(const Ring& targets, size_t index,
                            uint64_t distance, const Ring& ring,
                            absl::FunctionRef<void(const Place&)> visit);

  const Place* Find(const NodeId& node) const;

  Ring ring_;      // sorted
  Ring dialable_;  // those of ring_ that can be dialled
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_OVERLAY_H_
