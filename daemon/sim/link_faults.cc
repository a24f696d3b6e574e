#include "daemon/sim/link_faults.h"

#include <algorithm>
#include <string>

namespace dfl::sim {
namespace {

// Of kLoss events together with links.loss.
constexpr double kMostLoss = 0.99;

}  // namespace

LinkFaults::LinkFaults(const Scenario& scenario, const Members& members,
                       simports::SimNetwork& network)
    : scenario_(scenario), members_(members), network_(network) {
  SetPaths();
}

std::vector<LinkFaults::Edge> LinkFaults::EdgesOf(
    const NetworkEvent& event) const {
  if (event.kind != NetworkEvent::Kind::kPartition) {
    return {std::minmax(event.members[0], event.members[1])};
  }
  std::vector<Edge> edges;
  for (int64_t a = 0; a < members_.size(); ++a) {
    for (const int64_t b : members_[a].contacts) {
      if (a < b && event.group[static_cast<size_t>(a)] !=
                       event.group[static_cast<size_t>(b)]) {
        edges.emplace_back(a, b);
      }
    }
  }
  return edges;
}

void LinkFaults::Change(const NetworkEvent& event, int64_t sign) {
  switch (event.kind) {
    case NetworkEvent::Kind::kBlackHole:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, 0, sign);
      return;
    case NetworkEvent::Kind::kCut:
    case NetworkEvent::Kind::kPartition:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, sign, 0);
      return;
    case NetworkEvent::Kind::kLoss:
      extra_loss_ += static_cast<double>(sign) * event.amount;
      SetPaths();
      return;
    default:
      return;
  }
}

void LinkFaults::SetPaths() {
  const auto set = [&](int64_t a, int64_t b, simports::SimPath path) {
    path.reset_probability =
        std::clamp(path.reset_probability + extra_loss_, 0.0, kMostLoss);
    network_.SetPathBothWays(members_.name(a), members_.name(b), path);
  };
  if (extra_loss_ != 0 || paths_set_) {
    for (int64_t a = 0; a < members_.size(); ++a) {
      for (const int64_t b : members_[a].contacts) {
        if (a < b) set(a, b, scenario_.links);
      }
    }
    paths_set_ = true;
  }
  for (const PathSpec& spec : scenario_.paths) {
    if (members_.AreContacts(spec.a, spec.b)) set(spec.a, spec.b, spec.path);
  }
}

void LinkFaults::Apply(const Edge& edge, int64_t cuts, int64_t holes) {
  Trouble& trouble = troubles_[edge];
  trouble.cuts += cuts;
  trouble.holes += holes;
  const std::string& a = members_.name(edge.first);
  const std::string& b = members_.name(edge.second);
  if (trouble.cuts > 0) {
    network_.Cut(a, b);
  } else if (trouble.holes > 0) {
    network_.BlackHole(a, b);
  } else {
    network_.Heal(a, b);
  }
}

int64_t LinkFaults::Reachable(int64_t i) const {
  const std::vector<int64_t>& contacts = members_[i].contacts;
  if (troubles_.empty() && members_.in_run() == members_.size()) {
    return static_cast<int64_t>(contacts.size());
  }
  int64_t count = 0;
  for (const int64_t j : contacts) {
    if (!members_[j].in_run()) continue;
    const auto trouble = troubles_.find(std::minmax(i, j));
    if (trouble == troubles_.end() ||
        (trouble->second.cuts == 0 && trouble->second.holes == 0)) {
      ++count;
    }
  }
  return count;
}

}  // namespace dfl::sim
