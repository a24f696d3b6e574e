// The state of an algorithm as bytes, and what an algorithm takes of it. The
// input is tried as it is, and once more with right magic, version, length and
// checksum.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

// As those of the corpus have (tests/unit/core/four_nodes.h).
constexpr size_t kParameters = 12;
constexpr size_t kBuffers = 2;
constexpr size_t kVersionAt = 4;
constexpr size_t kLengthAt = 8;
constexpr size_t kLeastBytes = 20;

// What an algorithm asks for when it goes on.
class Ignored final : public core::Actions {
 public:
  void Do(core::Action /*action*/) override {}
};

// The first of four nodes, with the algorithm `info`.
core::NodePlan MakePlan(const core::AlgorithmInfo& info) {
  core::RunPlan plan;
  plan.seed = 7;
  for (int i = 0; i < 4; ++i) {
    plan.members.push_back(
        core::MemberSpec{.node = NodeId(absl::StrCat("node-", i)), .rows = 12});
  }
  plan.algorithm.name = info.name;
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format.coordinates = core::Coordinates::kDense;
  auto plans = core::DeriveNodePlans(plan);
  DFL_CHECK(plans.ok());
  return std::move(plans->front());
}

const core::NodePlan& PlanOf(const core::AlgorithmInfo& info) {
  static auto* const plans = new std::map<std::string, core::NodePlan>;
  auto found = plans->find(info.name);
  if (found == plans->end()) {
    found = plans->emplace(info.name, MakePlan(info)).first;
  }
  return found->second;
}

// An algorithm with the vectors that it works on.
class Subject {
 public:
  explicit Subject(const core::AlgorithmInfo& info)
      : plan_(PlanOf(info)),
        decisions_(DeriveSeed(plan_.seed, plan_.self.name())) {
    core::AlgorithmContext context;
    context.plan = plan_;
    context.vectors =
        core::NodeVectors{absl::MakeSpan(parameters_),
                          absl::MakeSpan(gradient_), absl::MakeSpan(buffers_)};
    context.train_rows = 12;
    algorithm_ = core::CreateAlgorithm(info, std::move(context), decisions_);
  }

  absl::Status Import(const core::AlgorithmState& state) {
    Ignored actions;
    return algorithm_->ImportState(state, actions);
  }
  std::string Export() {
    return core::SerializeState(algorithm_->ExportState());
  }
  core::Algorithm& algorithm() { return *algorithm_; }

 private:
  const core::NodePlan& plan_;
  core::SeededDecisions decisions_;
  std::vector<float> parameters_ = std::vector<float>(kParameters);
  std::vector<float> gradient_ = std::vector<float>(kParameters);
  std::vector<float> buffers_ = std::vector<float>(kBuffers);
  std::unique_ptr<core::Algorithm> algorithm_;
};

// A state that is refused changes nothing; of one that is taken the algorithm
// makes a state that it takes again.
void CheckImport(const core::AlgorithmState& state) {
  const auto info = core::BuiltInCatalogue().Find(state.algorithm);
  if (!info.ok()) return;
  Subject subject(**info);
  const std::string before = subject.Export();
  if (!subject.Import(state).ok()) {
    DFL_CHECK(subject.Export() == before);
    return;
  }
  const std::string after = subject.Export();
  DFL_CHECK(subject.algorithm().step() >= 0);
  (void)subject.algorithm().Gauges();
  const auto parsed = core::ParseState(after);
  DFL_CHECK(parsed.ok());
  Subject next(**info);
  DFL_CHECK(next.Import(*parsed).ok());
  DFL_CHECK(next.Export() == after);
}

void CheckState(absl::string_view bytes) {
  const auto state = core::ParseState(bytes);
  if (!state.ok()) return;
  DFL_CHECK(core::SerializeState(*state) == bytes);
  CheckImport(*state);
}

}  // namespace

DFL_FUZZ_TARGET(algorithm_state)(absl::string_view bytes) {
  CheckState(bytes);
  if (bytes.size() < kLeastBytes) return;
  std::string sealed(bytes);
  sealed.replace(0, kVersionAt, "DFLA");
  Put(core::kAlgorithmStateVersion, kVersionAt, &sealed);
  Put(uint64_t{sealed.size()}, kLengthAt, &sealed);
  SealEnd(&sealed);
  CheckState(sealed);
}

}  // namespace dfl::fuzz
