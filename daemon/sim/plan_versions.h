// The versions of the plan that a scenario has: the first one, and one for each
// event that changes it.
#ifndef DFL_SIM_PLAN_VERSIONS_H_
#define DFL_SIM_PLAN_VERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/sim/scenario.h"

namespace dfl::sim {

// A plan, and what follows from it for each member, by place in the first plan.
struct PlanVersion {
  std::shared_ptr<const core::RunPlan> plan;
  const core::AlgorithmInfo* algorithm;
  std::vector<bool> members;
  std::vector<core::DerivedPlan> nodes;  // of members
  absl::Duration within;                 // how late a node may take it
};

class PlanVersions {
 public:
  // Derives every version. `scenario.plan` has the rows of each member.
  // Errors: as core::CheckPlan.
  static absl::StatusOr<PlanVersions> Make(const Scenario& scenario);

  size_t size() const { return versions_.size(); }
  const PlanVersion& operator[](size_t version) const {
    return versions_[version];
  }
  // The one that the run begins with.
  const core::RunPlan& first() const { return *versions_.front().plan; }

  // The place of the plan with that number.
  size_t PlaceOf(uint64_t plan_version) const {
    return plan_version - first().version;
  }
  const PlanVersion& Numbered(uint64_t plan_version) const {
    return versions_[PlaceOf(plan_version)];
  }

  // The one that is given out at present.
  size_t newest() const { return newest_; }
  const PlanVersion& newest_version() const { return versions_[newest_]; }
  const core::RunPlan& newest_plan() const { return *versions_[newest_].plan; }
  void GiveOut(size_t version) { newest_ = version; }

  // A plan and the document that it is of, for member `i`: with the members
  // that `follower` knows, or with all where there is none.
  struct Given {
    std::shared_ptr<const core::RunPlan> document;
    core::DerivedPlan plan;
  };
  // Errors: as runtime::DeriveAmong.
  absl::StatusOr<Given> For(int64_t i, size_t version,
                            const runtime::PlanFollower* follower) const;

  // As a node keeps it. The plan's number stands for its text, since all nodes
  // have the same.
  runtime::KeptPlan ToKeep(size_t version) const;

  // Whom each member may have a link with in any version, by place, sorted.
  const std::vector<std::vector<int64_t>>& contacts() const {
    return contacts_;
  }

  // The probabilities that nodes drew by the plans that were given out.
  std::map<NodeId, core::DrawnProbabilities> Drawn() const;

 private:
  PlanVersions() = default;
  absl::Status Derive(const Scenario& scenario, PlanVersion& version);

  std::vector<PlanVersion> versions_;  // 0: the first
  const core::Catalogue* catalogue_ = nullptr;
  std::vector<std::vector<int64_t>> contacts_;
  size_t newest_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_PLAN_VERSIONS_H_
