// The members of a simulated network by place, each with the process that runs
// for it while it is up, and counts over all of them.
#ifndef DFL_SIM_MEMBERS_H_
#define DFL_SIM_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/sim/node_disk.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_transport.h"

namespace dfl::sim {

struct Member {
  NodeId self;
  // Whom it may have a link with in any version of the plan, by place, sorted.
  std::vector<int64_t> contacts;
  std::unique_ptr<ports::EventSink> ear;  // hears what its node reports
  runtime::RecordOptions records;         // of its node
  Rng compute{0};
  double slowness = 1;   // by kSlow events
  bool hostile = false;  // by the scenario
  bool left = false;     // for good, unless it joins again

  NodeDisk disk;
  size_t version = 0;  // of the plan that it holds: a place in PlanVersions
  int64_t boots = 0;
  std::vector<uint64_t> incarnations;

  ports::Phase phase = ports::Phase::kIdle;
  int64_t step = 0;
  int64_t round = 0;
  absl::Time step_began;  // while it trains
  std::unique_ptr<simports::SimLoop> loop;
  std::unique_ptr<simports::SimTransport> transport;
  std::unique_ptr<runtime::LinkedNode> linked;
  std::unique_ptr<runtime::PlanFollower> follower;  // null without membership
  runtime::Node* node = nullptr;                    // of `linked`

  bool up() const { return node != nullptr; }
  bool in_run() const;  // has a model
  // Is in the metrics of models: it has one, and is not hostile.
  bool measured() const { return in_run() && !hostile; }
  bool done() const;  // and will do no more steps
};

class Members {
 public:
  // Those of `plan`, all down.
  explicit Members(const core::RunPlan& plan);

  int64_t size() const { return static_cast<int64_t>(all_.size()); }
  Member& operator[](int64_t i) { return all_[static_cast<size_t>(i)]; }
  const Member& operator[](int64_t i) const {
    return all_[static_cast<size_t>(i)];
  }
  std::vector<Member>::iterator begin() { return all_.begin(); }
  std::vector<Member>::iterator end() { return all_.end(); }
  std::vector<Member>::const_iterator begin() const { return all_.begin(); }
  std::vector<Member>::const_iterator end() const { return all_.end(); }

  const std::string& name(int64_t i) const { return (*this)[i].self.name(); }
  bool AreContacts(int64_t a, int64_t b) const;

  // Calls `change`, which moves member `i`, and keeps the counts.
  template <typename Change>
  void Update(int64_t i, Change change) {
    Count((*this)[i], -1);
    change((*this)[i]);
    Count((*this)[i], +1);
  }

  int64_t up() const { return up_; }
  int64_t in_run() const { return in_run_; }
  // How many are in the metrics of models.
  int64_t measured() const;
  int64_t done() const { return done_; }
  // Of those in the run.
  int64_t step_sum() const { return step_sum_; }
  int64_t round_sum() const { return round_sum_; }

 private:
  void Count(const Member& member, int64_t sign);

  std::vector<Member> all_;
  int64_t up_ = 0;
  int64_t in_run_ = 0;
  int64_t done_ = 0;
  int64_t step_sum_ = 0;
  int64_t round_sum_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_MEMBERS_H_
