// What happens to a simulated network while it runs: the list `network.events`
// of a scenario.
//
//   - {at: 2s, crash: a, for: 3s}
//   - {at: 2s, join: b}
//   - {at: 2s, cut: [a, b], for: 3s}
//   - {at: 2s, black_hole: [a, b], for: 3s}
//   - {at: 2s, partition: [[a, b], [c]], for: 3s}
//   - {at: 2s, slow: a, factor: 4, for: 3s}
//   - {at: 2s, loss: 0.01, for: 3s}
//   - {at: 2s, change: {topology: {kind: ring}}, within: 500ms}
//   - {at: 2s, leave: a, within: 500ms}
//   - {at: 2s, disk: a, fault: torn, for: 3s}
#ifndef DFL_SIM_NETWORK_EVENT_H_
#define DFL_SIM_NETWORK_EVENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/sim/section_reader.h"

namespace dfl::sim {

// What a disk does to the state of a node (node_disk.h).
enum class DiskFault {
  kTorn,  // a crash truncates the last write to its first half
  kFull,  // every write fails
  kLost   // the directory is empty after a restart
};

struct NetworkEvent {
  enum class Kind {
    kCrash,
    kJoin,
    kCut,
    kBlackHole,
    kPartition,
    kSlow,
    kLoss,
    kChange,
    kLeave,
    kDisk
  };
  Kind kind = Kind::kCrash;
  absl::Duration at;
  // After this it is undone (a crashed node restarts); infinite: never.
  absl::Duration lasts = absl::InfiniteDuration();
  // kCrash, kJoin, kSlow, kLeave, kDisk: the member. kCut, kBlackHole: both
  // ends.
  std::vector<int64_t> members;
  // kPartition: the group of each member.
  std::vector<int64_t> group;
  // kSlow: its gradients take this many times longer, > 0. kLoss: added to the
  // reset probability of every link, in [0, 1).
  double amount = 0;
  DiskFault fault = DiskFault::kTorn;  // kDisk
  // kJoin: the node joins for the first time; otherwise it had left.
  bool first = false;
  // The plan from then on; null: no change. Every node takes it at a moment of
  // its own, at most `within` later (plan_changes.h).
  std::shared_ptr<const core::RunPlan> plan;
  absl::Duration within;
};

// An event and its place in the file.
struct WrittenEvent {
  NetworkEvent event;
  std::string path;         // "network.events[2]"
  int line = 1;             // in the file
  config::YamlNode change;  // kChange: what it says of the plan
};

// The events in the order in which they happen; those of one moment in the
// order of the file.
std::vector<WrittenEvent*> InTime(std::vector<WrittenEvent>& events);

// Reads the events of the section `network`, without their plans, in the order
// of the file. Mistakes go to `reader`.
std::vector<WrittenEvent> ReadEvents(const config::YamlNode& network,
                                     SectionReader& reader);

}  // namespace dfl::sim

#endif  // DFL_SIM_NETWORK_EVENT_H_
