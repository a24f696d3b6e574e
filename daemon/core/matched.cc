#include "daemon/core/matched.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/core/flat_vector.h"

namespace dfl::core {
namespace {

// Weights are sums of entries of W: less is rounding.
constexpr double kNoWeight = 1e-9;

void Scale(double by, absl::Span<float> vector) {
  for (float& value : vector) value *= static_cast<float>(by);
}

}  // namespace

bool MatchedFlows::MayGive(const NodeId& to) const {
  const auto it = unmatched_.find(to);
  return (it == unmatched_.end() || it->second.weight <= 0) &&
         std::none_of(given_.begin(), given_.end(),
                      [&](const Given& given) { return given.to == to; });
}

void MatchedFlows::Gave(const NodeId& to, MassLedger::Share share, double w) {
  given_.push_back(Given{to, std::move(share), w});
}

void MatchedFlows::Got(const NodeId& from, absl::Span<const float> share,
                       double w) {
  Settle(from);
  Add(from, -1, share, w);
}

void MatchedFlows::AddTo(absl::Span<float> vector) {
  while (!given_.empty()) Settle(NodeId(given_.front().to));
  for (const auto& [peer, unmatched] : unmatched_) {
    AddScaled(1.0F, unmatched.vector, vector);
  }
}

void MatchedFlows::Clear() {
  given_.clear();
  unmatched_.clear();
}

void MatchedFlows::Settle(const NodeId& to) {
  for (const Given& given : given_) {
    if (given.to == to) Add(to, 1, *given.share, given.weight);
  }
  given_.erase(
      std::remove_if(given_.begin(), given_.end(),
                     [&](const Given& given) { return given.to == to; }),
      given_.end());
}

void MatchedFlows::Add(const NodeId& peer, float sign,
                       absl::Span<const float> share, double w) {
  if (!(w > 0)) return;
  Unmatched& kept = unmatched_[peer];
  const double before = kept.weight;
  kept.weight += sign * w;
  if (std::fabs(kept.weight) < kNoWeight) {
    unmatched_.erase(peer);
  } else if (before * sign >= 0) {
    kept.vector.resize(share.size(), 0.0F);
    AddScaled(sign, share, absl::MakeSpan(kept.vector));
  } else if (before * kept.weight > 0) {
    Scale(kept.weight / before, absl::MakeSpan(kept.vector));
  } else {
    kept.vector.assign(share.begin(), share.end());
    Scale(kept.weight / w, absl::MakeSpan(kept.vector));
  }
}

}  // namespace dfl::core
