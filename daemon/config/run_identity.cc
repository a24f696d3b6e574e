#include "daemon/config/run_identity.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/rng.h"
#include "daemon/base/sha256.h"
#include "daemon/config/plan_yaml.h"

namespace dfl::config {
namespace {

constexpr size_t kHashDigits = 12;
constexpr uint64_t kMostSeed = 999'999'999;  // short enough to be typed again

std::string HashOf(core::RunPlan plan) {
  plan.version = 0;
  plan.run_id.clear();
  plan.members.clear();
  plan.participants = {};
  return Sha256Hex(absl::StrCat("dfl run 1\n", WritePlan(plan)))
      .substr(0, kHashDigits);
}

// The counter in a run's id; nullopt: its author named it.
std::optional<uint64_t> CounterOf(absl::string_view run_id) {
  uint64_t counter = 0;
  if (run_id.size() < kHashDigits + 2 || run_id[kHashDigits] != '-' ||
      !absl::SimpleAtoi(run_id.substr(kHashDigits + 1), &counter)) {
    return std::nullopt;
  }
  const absl::string_view hash = run_id.substr(0, kHashDigits);
  const bool is_hash =
      std::all_of(hash.begin(), hash.end(),
                  [](unsigned char c) { return absl::ascii_isxdigit(c); });
  return is_hash ? std::optional(counter) : std::nullopt;
}

}  // namespace

uint64_t NextRunCounter(const ContinuedRun& before) {
  if (before.run_id.empty()) return 1;
  // Every run has its own version of the plan, so no counter is above it.
  return CounterOf(before.run_id).value_or(before.version) + 1;
}

void IdentifyNewRun(uint64_t counter, core::RunPlan& plan) {
  if (plan.run_id.empty()) {
    plan.run_id = absl::StrCat(HashOf(plan), "-", counter);
  }
  if (plan.seed == 0) {
    plan.seed = 1 + DeriveSeed(1, plan.run_id) % kMostSeed;
  }
}

void IdentifyRun(const ContinuedRun& before, core::RunPlan& plan) {
  if (plan.run_id.empty() && CounterOf(before.run_id).has_value() &&
      before.run_id.compare(0, kHashDigits, HashOf(plan)) == 0) {
    plan.run_id = before.run_id;
  }
  IdentifyNewRun(NextRunCounter(before), plan);
}

}  // namespace dfl::config
