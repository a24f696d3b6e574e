#include "daemon/app/models/node_learner.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/plan_facts.h"
#include "daemon/base/status_macros.h"
#include "daemon/console/units.h"
#include "daemon/core/contract/agreement.h"

namespace dfl::app {
namespace {

using console::HumanBytes;

int64_t ModelBytes(const ports::ModelInfo& model) {
  return 4 * (model.parameter_count + model.buffer_count);
}

// Whether the data and the model are such that the plan can use them.
absl::Status CheckFits(const core::DerivedPlan& plan,
                       const NodeLearner::Built& built) {
  if (plan.checked.algorithm->predicts &&
      built.contract.task == core::Task::kRegression) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data: the task is a regression, and algorithm.name is ",
        plan.plan().algorithm.name, ", which compares predicted classes"));
  }
  // A learner that stays was tried with another batch size.
  if (plan.plan().batch_size < built.model.min_batch_rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size: ", plan.plan().batch_size,
                     ", but the model normalises by the batch; allowed: ",
                     built.model.min_batch_rows, " or more"));
  }
  return absl::OkStatus();
}

// A section that leaves nothing of `contract` open.
core::DataSection SectionOf(const core::DataContract& contract) {
  core::DataSection section;
  section.task = contract.task;
  if (contract.task == core::Task::kClassification) {
    section.classes = contract.classes;
  }
  section.features = contract.features;
  section.shape = contract.shape;
  section.divide = contract.input.divide;
  section.per = contract.input.per;
  if (contract.input.per != core::InputScaling::Per::kNone) {
    section.over = contract.input.over;
  }
  section.mean = contract.input.mean;
  section.std = contract.input.std;
  section.model = contract.model;
  return section;
}

}  // namespace

absl::StatusOr<NodeLearner::Next> NodeLearner::Find(
    const core::DerivedPlan& derived) {
  const core::RunPlan& plan = derived.plan();
  const std::optional<Built> present = built();
  Next next;
  const bool same_spec = present.has_value() && present->spec == plan.model;
  if (same_spec && present->section == plan.data) {
    next.built = *present;
  } else {
    DFL_ASSIGN_OR_RETURN(const core::DataOffer offer,
                         learners_.Offer(&plan.model, plan.data));
    DFL_ASSIGN_OR_RETURN(core::DataContract contract,
                         core::Resolve(plan.data, plan.model.classes, offer));
    if (same_spec && present->contract == contract) {
      next.built = *present;
      next.built.section = plan.data;  // the same in other words
    } else {
      DFL_ASSIGN_OR_RETURN(next.learner, Build(learners_, plan.model, contract,
                                               plan.batch_size));
      next.built = {plan.model,
                    plan.data,
                    std::move(contract),
                    plan.batch_size,
                    next.learner->model(),
                    next.learner->data(),
                    learners_.EngineOf(*next.learner)};
    }
  }
  next.built.batch_size = plan.batch_size;
  DFL_RETURN_IF_ERROR(CheckFits(derived, next.built));
  return next;
}

absl::StatusOr<NodeLearner::Next> NodeLearner::OnRows(LearnerFactory& rows) {
  Next next;
  next.built = *built();
  Built& present = next.built;
  const core::DataSection section = SectionOf(present.contract);
  DFL_ASSIGN_OR_RETURN(const core::DataOffer offer,
                       rows.Offer(&present.spec, section));
  DFL_ASSIGN_OR_RETURN(const core::DataContract contract,
                       core::Resolve(section, present.spec.classes, offer));
  std::string differ;
  for (const core::ContractField field : core::kContractFields) {
    if (FieldText(contract, field) == FieldText(present.contract, field)) {
      continue;
    }
    absl::StrAppend(&differ, differ.empty() ? "" : "; ", FieldName(field), ": ",
                    FieldText(contract, field),
                    "; allowed: ", FieldText(present.contract, field),
                    ", as the run says");
  }
  if (!differ.empty()) return absl::InvalidArgumentError(differ);
  DFL_ASSIGN_OR_RETURN(next.learner,
                       Build(rows, present.spec, contract, present.batch_size));
  DFL_RETURN_IF_ERROR(MayHold(next.learner->data().bytes));
  present.model = next.learner->model();
  present.data = next.learner->data();
  present.engine = rows.EngineOf(*next.learner);
  return next;
}

absl::StatusOr<std::unique_ptr<ports::Learner>> NodeLearner::Build(
    LearnerFactory& learners, const core::ModelSpec& spec,
    const core::DataContract& contract, int64_t batch_size) const {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ports::Learner> learner,
                       learners.Build(spec, contract, batch_size));
  const ports::ModelInfo& model = learner->model();
  const auto bytes = static_cast<uint64_t>(ModelBytes(model));
  if (bytes > limits_.max_model_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("model: ", model.kind, " takes ", bytes,
                     " bytes; this node's limits.max_model_bytes allows ",
                     limits_.max_model_bytes));
  }
  for (const std::string& warning : model.warnings) {
    log_.Warning("model", warning);
  }
  return learner;
}

absl::Status NodeLearner::MayRead(int64_t file_bytes,
                                  int64_t present_file_bytes) const {
  const std::optional<Built> present = built();
  if (!present.has_value() || present_file_bytes <= 0) return absl::OkStatus();
  return MayHold(static_cast<int64_t>(static_cast<double>(present->data.bytes) /
                                      static_cast<double>(present_file_bytes) *
                                      static_cast<double>(file_bytes)));
}

absl::Status NodeLearner::MayHold(int64_t rows) const {
  const absl::MutexLock lock(&mutex_);
  if (!built_.has_value() || limits_.memory.bytes == 0) return absl::OkStatus();
  const int64_t together = need_bytes_ + rows + ModelBytes(built_->model);
  if (together <= limits_.memory.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "memory: the new rows take about ", HumanBytes(rows),
      " beside the present ones until they are in their place, which makes ",
      HumanBytes(together), " with all that the plan may need; allowed: ",
      HumanBytes(limits_.memory.bytes), " (", limits_.memory.origin,
      "). Start dfld anew, which then reads the new rows alone, or set "
      "compute.memory_limit"));
}

absl::Status NodeLearner::MayNeed(const runtime::MemoryNeed& need) const {
  const absl::Status within = CheckMemory(need, limits_.memory);
  const absl::MutexLock lock(&mutex_);
  return need.total <= need_bytes_ ? absl::OkStatus() : within;
}

void NodeLearner::SetGiven(Built built, const runtime::MemoryNeed& need) {
  const absl::MutexLock lock(&mutex_);
  built_ = std::move(built);
  need_bytes_ = need.total;
}

void NodeLearner::SetRenewed(Built built) {
  const absl::MutexLock lock(&mutex_);
  need_bytes_ += built.data.bytes - (built_ ? built_->data.bytes : 0);
  built_ = std::move(built);
}

void NodeLearner::OnFollowed(const core::DerivedPlan& plan) {
  const absl::MutexLock lock(&mutex_);
  if (!built_.has_value()) return;
  const absl::StatusOr<runtime::MemoryNeed> need =
      runtime::NeedOf(plan, built_->model, built_->data,
                      ProgramBytes(built_->model, built_->engine));
  if (need.ok()) need_bytes_ = need->total;
}

std::optional<NodeLearner::Built> NodeLearner::built() const {
  const absl::MutexLock lock(&mutex_);
  return built_;
}

void NodeLearner::Tell(control::DaemonStatus& status) const {
  status.memory_limit_bytes = limits_.memory.bytes;
  {
    const absl::MutexLock lock(&mutex_);
    status.memory_bytes = need_bytes_;
    if (built_.has_value()) status.learner = built_->engine;
  }
  if (status.learner.empty()) return;
  const ThreadChoice choice = learners_.Threads(status.learner);
  status.threads = choice.threads;
  status.threads_reason = choice.reason;
}

int64_t NodeLearner::need_bytes() const {
  const absl::MutexLock lock(&mutex_);
  return need_bytes_;
}

}  // namespace dfl::app
