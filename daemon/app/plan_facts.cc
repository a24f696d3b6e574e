#include "daemon/app/plan_facts.h"

#include "daemon/core/plan/plan_topology.h"
#include "daemon/learner/catalogue/batch_learner.h"

namespace dfl::app {
namespace {

constexpr int64_t kPlainBytes = 60'000'000;
constexpr int64_t kTorchBytes = 180'000'000;
constexpr int64_t kLearnerVectors = 3;

}  // namespace

int64_t ProgramBytes(const ports::ModelInfo& model, const std::string& engine) {
  if (engine == learner::kPlainEngine) return kPlainBytes;
  return kTorchBytes + 4 * kLearnerVectors * model.parameter_count;
}

control::ModelFacts FactsOf(const core::DerivedPlan& plan,
                            const ports::ModelInfo& model,
                            const ports::DataInfo& data,
                            const runtime::MemoryNeed& need,
                            const MemoryLimit& limit) {
  control::ModelFacts facts;
  facts.kind = model.kind;
  facts.fingerprint = model.contract.model;
  facts.parameter_count = model.parameter_count;
  facts.buffer_count = model.buffer_count;
  facts.dtypes = {"float32"};
  facts.train_rows = data.train_rows;
  facts.test_rows = data.test_rows;
  facts.memory_bytes = need.total;
  facts.memory_parts = need.parts;
  facts.memory_limit_bytes = limit.bytes;
  facts.message_bytes = need.message;
  facts.spectral_gap = core::SpectralGapIfSmall(plan.plan());
  if (const auto first_step = plan.checked.algorithm->first_step) {
    facts.first_step_note = first_step(plan.node);
  }
  return facts;
}

}  // namespace dfl::app
