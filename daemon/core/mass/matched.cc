#include "daemon/core/mass/matched.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {
namespace {

// Weights are sums of entries of W: less is rounding.
constexpr double kNoWeight = 1e-9;

void Scale(double by, absl::Span<float> vector) {
  for (float& value : vector) value *= static_cast<float>(by);
}

}  // namespace

EdgeCost MatchedCost() {
  EdgeCost cost;
  cost.given = 1;
  cost.taken = 1;
  return cost;
}

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
  if (w > 0) {
    Add(from, -1, share, w);
    return;
  }
  const auto it = unmatched_.find(from);
  if (it != unmatched_.end() && it->second.weight < 0) {
    AddScaled(-1.0F, share, absl::MakeSpan(it->second.vector));
  }
}

FlatVector MatchedFlows::Renew(const NodeId& to, absl::Span<const float> share,
                               double w) {
  Unmatched& kept = unmatched_.at(to);
  FlatVector renewed(share.begin(), share.end());
  Scale(kept.weight / w, absl::MakeSpan(renewed));
  std::swap(kept.vector, renewed);  // renewed is the old one
  for (size_t l = 0; l < renewed.size(); ++l) {
    renewed[l] = kept.vector[l] - renewed[l];
  }
  return renewed;
}

void MatchedFlows::AddTo(absl::Span<float> vector) {
  while (!given_.empty()) Settle(NodeId(given_.front().to));
  for (const auto& [peer, unmatched] : unmatched_) {
    AddScaled(1.0F, unmatched.vector, vector);
  }
}

double MatchedFlows::Present(const std::vector<Neighbour>& neighbours,
                             const std::vector<Neighbour>& up) const {
  double all = 0;
  for (const Neighbour& neighbour : neighbours) all += neighbour.weight;
  double present = 0;
  for (const Neighbour& neighbour : up) {
    if (MayGive(neighbour.node)) present += neighbour.weight;
  }
  return all > 0 ? present / all : 1;
}

void TakeStep(double s, double alpha, absl::Span<const float> gradient,
              absl::Span<const float> correction, absl::Span<float> x) {
  AddScaled(static_cast<float>(-s * alpha), gradient, x);
  if (s < 1) AddScaled(static_cast<float>(s - 1), correction, x);
}

void MatchedFlows::Clear() {
  given_.clear();
  unmatched_.clear();
}

void MatchedFlows::VisitState(StateFields& fields, size_t length) {
  fields.ByNode("unmatched", unmatched_, [&](Unmatched& kept) {
    fields.Number("weight", kept.weight);
    fields.Vector("vector", kept.vector, length);
  });
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
