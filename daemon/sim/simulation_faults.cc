// What goes wrong: the scenario's events.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/config/values.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

// The bound of links.loss and all kLoss events together.
constexpr double kMostLoss = 0.99;

}  // namespace

// Schedules events of their own, because the first node is in the middle of an
// event, and the others begin at the same time.
void Simulation::OnFirstTraining() {
  training_began_ = true;
  zero_ = scheduler_.Now();
  scheduler_.At(zero_, owner_, [this] { TakeRow(); });
  ScheduleEvents();
  scheduler_.At(zero_ + scenario_.limit, owner_, [this] {
    EndBy(End::kLimit,
          absl::StrCat("network.limit, ",
                       config::WriteDuration(scenario_.limit), ", has passed"));
  });
}

void Simulation::ScheduleEvents() {
  for (const NetworkEvent& event : scenario_.events) {
    scheduler_.At(zero_ + event.at, owner_, [this, &event] {
      if (event.plan != nullptr) {
        BeginChange(event.plan->version - plan_->version);
      }
      Begin(event);
    });
    if (event.lasts == absl::InfiniteDuration()) continue;
    scheduler_.At(zero_ + event.at + event.lasts, owner_,
                  [this, &event] { Undo(event); });
  }
}

std::vector<Simulation::Edge> Simulation::EdgesOf(
    const NetworkEvent& event) const {
  if (event.kind != NetworkEvent::Kind::kPartition) {
    return {std::minmax(event.members[0], event.members[1])};
  }
  std::vector<Edge> edges;
  for (int64_t a = 0; a < size(); ++a) {
    for (const int64_t b : slots_[static_cast<size_t>(a)].contacts) {
      if (a < b && event.group[static_cast<size_t>(a)] !=
                       event.group[static_cast<size_t>(b)]) {
        edges.emplace_back(a, b);
      }
    }
  }
  return edges;
}

void Simulation::Begin(const NetworkEvent& event) {
  switch (event.kind) {
    case NetworkEvent::Kind::kCrash:
      if (slots_[static_cast<size_t>(event.members[0])].up()) {
        ++result_.crashes;
        TakeDown(event.members[0]);
        Slot& slot = slots_[static_cast<size_t>(event.members[0])];
        if (slot.disk_faults[static_cast<int>(DiskFault::kTorn)] > 0) {
          slot.disk.TearLastWrite();
        }
      }
      return;
    case NetworkEvent::Kind::kJoin:
      slots_[static_cast<size_t>(event.members[0])].left = false;
      Return(event.members[0]);
      return;
    case NetworkEvent::Kind::kBlackHole:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, 0, 1);
      return;
    case NetworkEvent::Kind::kCut:
    case NetworkEvent::Kind::kPartition:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, 1, 0);
      return;
    case NetworkEvent::Kind::kSlow:
      slots_[static_cast<size_t>(event.members[0])].slowness *= event.amount;
      return;
    case NetworkEvent::Kind::kLoss:
      extra_loss_ += event.amount;
      SetPaths();
      return;
    case NetworkEvent::Kind::kChange:
      return;
    case NetworkEvent::Kind::kDisk:
      SetDiskFault(event, 1);
      return;
    case NetworkEvent::Kind::kLeave:
      // As a dfld that gets SIGTERM: it says nothing, its links are closed.
      slots_[static_cast<size_t>(event.members[0])].left = true;
      TakeDown(event.members[0]);
      return;
  }
}

void Simulation::Return(int64_t i) {
  --returns_;
  const Slot& slot = slots_[static_cast<size_t>(i)];
  if (!slot.up() && !slot.left) Boot(i);
}

void Simulation::Undo(const NetworkEvent& event) {
  switch (event.kind) {
    case NetworkEvent::Kind::kCrash:
      Return(event.members[0]);
      return;
    case NetworkEvent::Kind::kJoin:
    case NetworkEvent::Kind::kChange:
    case NetworkEvent::Kind::kLeave:
      return;
    case NetworkEvent::Kind::kDisk:
      SetDiskFault(event, -1);
      return;
    case NetworkEvent::Kind::kBlackHole:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, 0, -1);
      return;
    case NetworkEvent::Kind::kCut:
    case NetworkEvent::Kind::kPartition:
      for (const Edge& edge : EdgesOf(event)) Apply(edge, -1, 0);
      return;
    case NetworkEvent::Kind::kSlow:
      slots_[static_cast<size_t>(event.members[0])].slowness /= event.amount;
      return;
    case NetworkEvent::Kind::kLoss:
      extra_loss_ -= event.amount;
      SetPaths();
      return;
  }
}

void Simulation::SetPaths() {
  const auto set = [&](int64_t a, int64_t b, simports::SimPath path) {
    path.reset_probability =
        std::clamp(path.reset_probability + extra_loss_, 0.0, kMostLoss);
    network_->SetPathBothWays(name(a), name(b), path);
  };
  if (extra_loss_ != 0 || paths_set_) {
    for (int64_t a = 0; a < size(); ++a) {
      for (const int64_t b : slots_[static_cast<size_t>(a)].contacts) {
        if (a < b) set(a, b, scenario_.links);
      }
    }
    paths_set_ = true;
  }
  for (const PathSpec& spec : scenario_.paths) {
    if (AreContacts(spec.a, spec.b)) set(spec.a, spec.b, spec.path);
  }
}

// What began twice must end twice.
void Simulation::Apply(const Edge& edge, int64_t cuts, int64_t holes) {
  Trouble& trouble = troubles_[edge];
  trouble.cuts += cuts;
  trouble.holes += holes;
  const std::string& a = name(edge.first);
  const std::string& b = name(edge.second);
  if (trouble.cuts > 0) {
    network_->Cut(a, b);
  } else if (trouble.holes > 0) {
    network_->BlackHole(a, b);
  } else {
    network_->Heal(a, b);
  }
}

}  // namespace dfl::sim
