#include "daemon/runtime/guards/model_distances.h"

#include <algorithm>
#include <vector>

namespace dfl::runtime {
namespace {

double Median(const std::deque<double>& values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<int64_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void ModelDistances::Begin(int64_t round, absl::Time now) {
  peers_.clear();
  begun_ = last_ = Meeting{round, now};
  taken_ = 0;
}

double ModelDistances::Apart(const Meeting& last, const Model& model) {
  return std::max(static_cast<double>(model.round - last.round),
                  absl::ToDoubleSeconds(model.now - last.when));
}

std::optional<double> ModelDistances::UsualOfOthers(const NodeId& peer) const {
  std::optional<double> usual;
  for (const auto& [id, other] : peers_) {
    if (id == peer || other.recent.empty()) continue;
    usual = std::max(usual.value_or(0), Median(other.recent));
  }
  return usual;
}

double ModelDistances::Bound(const NodeId& peer, const Model& model) const {
  const std::optional<double> others = UsualOfOthers(peer);
  const double all_apart = Apart(last_, model);
  if (taken_ < kFirst) {
    return kAtFirst * std::max(1.0, all_apart) *
           std::max({model.own, others.value_or(0), 0.1});
  }
  const auto known = peers_.find(peer);
  double usual = others.value_or(0);
  double apart = Apart(begun_, model);
  double larger = apart;
  if (known != peers_.end()) {
    const Peer& entry = known->second;
    if (!others) usual = Median(entry.recent);
    larger = apart = Apart(entry.last, model);
    if (model.round <= entry.back + 1) larger = std::max(larger, entry.away);
  }
  const double widening = std::max(std::min(1 + apart, kWidest), 1 + all_apart);
  return std::max(kNear * model.own * std::clamp(larger, 1.0, kAtFirst),
                  kTimes * usual * widening);
}

std::optional<double> ModelDistances::Judge(const NodeId& peer,
                                            const Model& model) {
  // Not `>`: a distance that is no number is beyond every bound.
  if (!(model.distance <= kNear * model.own)) {
    const double bound = Bound(peer, model);
    if (!(model.distance <= bound)) return bound;
  }
  ++taken_;
  const auto [it, added] = peers_.try_emplace(peer);
  Peer& entry = it->second;
  const double apart = Apart(added ? begun_ : entry.last, model);
  if (apart > 1) {
    entry.away = apart;
    entry.back = model.round;
  }
  entry.recent.push_back(model.distance);
  if (entry.recent.size() > kKept) entry.recent.pop_front();
  entry.last = last_ = Meeting{model.round, model.now};
  return std::nullopt;
}

}  // namespace dfl::runtime
