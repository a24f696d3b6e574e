// How a plan comes to the node: read and checked, derived, a learner built
// where the model is another one, memory estimated, kept on disk, handed over.
// One plan at a time, and each of these steps once a plan.
#ifndef DFL_APP_PLAN_TAKER_H_
#define DFL_APP_PLAN_TAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/app/async_trainer.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/logger.h"
#include "daemon/app/models/node_learner.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/base/ids.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/control/backend.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/memory_need.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// The two costly steps of a plan's way, each done once a plan; a test counts
// them.
struct PlanSteps {
  TrainerPace pace;  // of every trainer that the node is given
  std::function<absl::StatusOr<core::CheckedPlan>(
      absl::string_view text, absl::string_view file_name,
      absl::FunctionRef<void(core::RunPlan&)> complete)>
      parse = [](absl::string_view text, absl::string_view file_name,
                 absl::FunctionRef<void(core::RunPlan&)> complete) {
        return config::ParseCheckedPlan(text, file_name, complete);
      };
  std::function<absl::StatusOr<core::DerivedPlan>(core::CheckedPlan,
                                                  const NodeId&)>
      derive = core::Derive;
};

// A document, and the plan that it is with the members that are there.
struct PlanAmong {
  std::shared_ptr<const core::RunPlan> document;
  core::CheckedPlan checked;
  std::vector<std::string> warnings;
  // Another node than this one is a member and is there.
  bool elsewhere = false;
};

// Makes the record that is to be kept with a plan.
using MakePlanRecord =
    std::function<absl::StatusOr<std::string>(const runtime::KeptPlan& plan)>;

// Where a plan stands among the others.
enum class PlanOrder {
  kByVersion,  // it must have a higher version than the one that is known
  kByRecord,   // it is the newest record
};

// Where a document comes from.
struct PlanSource {
  std::string name = {};  // what errors call it
  PlanOrder order = PlanOrder::kByVersion;
  uint64_t counter = 0;             // of its record; 0: it came as a document
  std::string author = {};          // of its record
  MakePlanRecord make_record = {};  // null: a document is kept without one
};

// Reading data and building a model take seconds, so Apply and TakeUpStored are
// called away from the loop, and one at a time.
class PlanTaker {
 public:
  using Order = PlanOrder;

  // All must outlive it. `on_set` is called on the loop when the node has been
  // given a plan. Null `follower`: nobody else is known to be there.
  PlanTaker(NodeId self, PlanLimits limits, EventLoop& loop,
            runtime::Node& node, runtime::PlanFollower* follower,
            LearnerFactory& learners, SharedKeeper& keeper, Logger& log,
            PlanSteps steps, std::function<void()> on_set);
  ~PlanTaker();

  // As control::Backend::ApplyPlan; `file_name` is what errors call the
  // document. The plan is on disk together with its record. Null: it has none.
  // Errors: those of `make_record` as well.
  absl::StatusOr<control::ApplyPlanResult> Apply(
      const control::ApplyPlanOptions& options, const std::string& file_name,
      MakePlanRecord make_record = nullptr) {
    return Take(options, {.name = file_name,
                          .order = Order::kByVersion,
                          .make_record = std::move(make_record)});
  }

  // The same for the record `options.record` of that counter, whose content is
  // in `options.yaml`. Nothing is filled in: it must be complete, so that all
  // nodes take the same document.
  // Errors: as Apply; INVALID_ARGUMENT says what is missing.
  absl::StatusOr<control::ApplyPlanResult> ApplySigned(
      const control::ApplyPlanOptions& options, uint64_t counter,
      const std::string& author, Order order) {
    return Take(options, {.name = "the record's plan",
                          .order = order,
                          .counter = counter,
                          .author = author});
  }

  // As control::Backend::GetData.
  absl::StatusOr<control::NodeData> Data(const std::string& yaml);

  // Takes up the plan that is known from before this start, under its own
  // version, though it may need more memory than is allowed today.
  // Errors: as Apply; the plan stays known.
  absl::Status TakeUpStored();

  // Has the node go on with `rows` from the next boundary on, in the run and
  // under the data contract in force. Without a plan there is nothing to do.
  // Away from the loop, one at a time with the above.
  // Errors: as NodeLearner::OnRows and Node::RenewTrainer; UNAVAILABLE when the
  // loop has ended. The node goes on as before.
  absl::Status TakeRows(LearnerFactory& rows);

  // What the node learns with.
  const NodeLearner& learner() const { return learner_; }
  // That of the plan in force; null: none. Every trainer of the node was made
  // in Hand or TakeRows. On the loop.
  AsyncTrainer* trainer() const {
    return static_cast<AsyncTrainer*>(node_.trainer());
  }

 private:
  // A plan that the node could take.
  struct Prepared {
    std::shared_ptr<const core::RunPlan> document;
    core::DerivedPlan plan;
    // nullopt: the node watches, and has no data for a learner.
    std::optional<NodeLearner::Next> learner;
    runtime::MemoryNeed need;
  };

  absl::StatusOr<control::ApplyPlanResult> Take(
      const control::ApplyPlanOptions& options, const PlanSource& source);
  // The document as a checked plan; what it leaves open is filled in first,
  // unless it came as a record.
  absl::StatusOr<core::CheckedPlan> Read(const std::string& yaml,
                                         const PlanSource& source,
                                         uint64_t version) const;
  // Errors: as Derive and NodeLearner::Find. `by_record`: a node that a fixed
  // set does not name watches.
  absl::StatusOr<Prepared> Prepare(PlanAmong among, bool by_record);
  // Gives it to the node.
  // Errors: as Node::SetPlan; UNAVAILABLE when the loop has ended.
  absl::Status Hand(Prepared prepared);
  void LogTaken(const runtime::KeptPlan& plan, const std::string& who);

  const NodeId self_;
  EventLoop& loop_;
  runtime::Node& node_;
  runtime::PlanFollower* const follower_;
  LearnerFactory& learners_;
  SharedKeeper& keeper_;
  Logger& log_;
  const PlanSteps steps_;
  const std::function<void()> on_set_;
  NodeLearner learner_;
};

}  // namespace dfl::app

#endif  // DFL_APP_PLAN_TAKER_H_
