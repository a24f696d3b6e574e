#include "daemon/runtime/membership/overlay.h"

#include <algorithm>
#include <set>

#include "daemon/base/rng.h"

namespace dfl::runtime {

namespace {

constexpr int kRingBits = 64;

uint64_t DistanceOf(int finger) { return uint64_t{1} << finger; }

}  // namespace

uint64_t Overlay::PositionOf(const NodeId& node) {
  return DeriveSeed(0, node.name());
}

size_t Overlay::IndexOf(const Ring& ring, const NodeId& node) {
  const Place place{PositionOf(node), node};
  const auto it = std::lower_bound(ring.begin(), ring.end(), place);
  return it != ring.end() && it->node == node
             ? static_cast<size_t>(it - ring.begin())
             : ring.size();
}

const Overlay::Place* Overlay::Find(const NodeId& node) const {
  const size_t index = IndexOf(ring_, node);
  return index == ring_.size() ? nullptr : &ring_[index];
}

bool Overlay::Has(const NodeId& node) const { return Find(node) != nullptr; }

bool Overlay::Set(const NodeId& node, bool dialable) {
  const Place* found = Find(node);
  if (found != nullptr && found->dialable == dialable) return false;
  Remove(node);
  const Place place{PositionOf(node), node, dialable};
  const auto insert = [&](Ring& ring) {
    ring.insert(std::lower_bound(ring.begin(), ring.end(), place), place);
  };
  insert(ring_);
  if (dialable) insert(dialable_);
  return true;
}

bool Overlay::Remove(const NodeId& node) {
  const size_t index = IndexOf(ring_, node);
  if (index == ring_.size()) return false;
  ring_.erase(ring_.begin() + static_cast<int64_t>(index));
  const size_t among = IndexOf(dialable_, node);
  if (among < dialable_.size()) {
    dialable_.erase(dialable_.begin() + static_cast<int64_t>(among));
  }
  return true;
}

const Overlay::Place& Overlay::Successor(const Ring& ring, uint64_t position) {
  const auto it = std::lower_bound(
      ring.begin(), ring.end(), position,
      [](const Place& place, uint64_t p) { return place.position < p; });
  return it == ring.end() ? ring.front() : *it;
}

std::vector<NodeId> Overlay::FingersOf(const NodeId& node) const {
  std::set<NodeId> fingers;
  const Place* self = Find(node);
  if (self == nullptr) return {};
  const Ring& targets = self->dialable ? ring_ : dialable_;
  if (targets.empty()) return {};
  for (int i = kRingBits - 1; i >= 0; --i) {
    const Place& finger = Successor(targets, self->position + DistanceOf(i));
    if (finger.node != node) fingers.insert(finger.node);
  }
  return {fingers.begin(), fingers.end()};
}

void Overlay::ForEachBefore(const Ring& targets, size_t index,
                            uint64_t distance, const Ring& ring,
                            absl::FunctionRef<void(const Place&)> visit) {
  const Place& target = targets[index];
  const Place& before = targets[index == 0 ? targets.size() - 1 : index - 1];
  if (before.node == target.node) {  // it is the only one
    std::for_each(ring.begin(), ring.end(), visit);
    return;
  }
  // Of two at one position only the first is ever found.
  if (before.position == target.position) return;
  // Those that stand in (from, to], which may go over the ring's end.
  const auto after = [&](uint64_t position) {
    return std::upper_bound(
        ring.begin(), ring.end(), position,
        [](uint64_t p, const Place& place) { return p < place.position; });
  };
  const uint64_t from = before.position - distance;
  const uint64_t to = target.position - distance;
  if (from < to) {
    std::for_each(after(from), after(to), visit);
  } else {
    std::for_each(after(from), ring.end(), visit);
    std::for_each(ring.begin(), after(to), visit);
  }
}

std::vector<NodeId> Overlay::LinksOf(const NodeId& node) const {
  const size_t index = IndexOf(ring_, node);
  if (index == ring_.size()) return {};
  const std::vector<NodeId> fingers = FingersOf(node);
  std::set<NodeId> links(fingers.begin(), fingers.end());
  const size_t among = IndexOf(dialable_, node);
  for (int i = 0; i < kRingBits; ++i) {
    ForEachBefore(ring_, index, DistanceOf(i), dialable_,
                  [&](const Place& place) { links.insert(place.node); });
    if (among == dialable_.size()) continue;
    ForEachBefore(dialable_, among, DistanceOf(i), ring_,
                  [&](const Place& place) {
                    if (!place.dialable) links.insert(place.node);
                  });
  }
  links.erase(node);
  return {links.begin(), links.end()};
}

bool Overlay::ShouldLink(const NodeId& a, const NodeId& b) const {
  const auto has_finger = [this](const NodeId& from, const NodeId& to) {
    const std::vector<NodeId> fingers = FingersOf(from);
    return std::binary_search(fingers.begin(), fingers.end(), to);
  };
  return has_finger(a, b) || has_finger(b, a);
}

NodeId Overlay::NextHop(const NodeId& target, const NodeId& from,
                        absl::Span<const NodeId> linked) const {
  if (std::find(linked.begin(), linked.end(), target) != linked.end()) {
    return target;
  }
  const Place* place = Find(target);
  if (place == nullptr) return NodeId();
  const uint64_t goal = place->dialable || dialable_.empty()
                            ? place->position
                            : Successor(dialable_, place->position).position;
  const Place* best = nullptr;
  for (const NodeId& node : linked) {
    const Place* candidate = node == from ? nullptr : Find(node);
    if (candidate == nullptr) continue;
    if (best == nullptr || goal - candidate->position < goal - best->position) {
      best = candidate;
    }
  }
  return best == nullptr ? NodeId() : best->node;
}

}  // namespace dfl::runtime
