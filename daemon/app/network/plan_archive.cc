#include "daemon/app/network/plan_archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/plan_yaml.h"

namespace dfl::app {
namespace {

using runtime::KeptPlan;

std::string FileOf(uint64_t slot) { return absl::StrCat("plan.", slot); }

}  // namespace

PlanArchive::PlanArchive(ports::Files* files) : files_(files) {
  if (files_ == nullptr) return;
  const absl::MutexLock lock(&mutex_);
  for (uint64_t slot = 0; slot < kKept; ++slot) {
    absl::StatusOr<std::string> text = files_->Read(FileOf(slot));
    if (!text.ok()) continue;
    const absl::StatusOr<core::RunPlan> plan =
        config::ParsePlan(*text, FileOf(slot));
    if (!plan.ok() || plan->version % kKept != slot) continue;
    plans_[slot] = std::make_shared<const KeptPlan>(
        KeptPlan{*std::move(text), plan->version, plan->run_id});
  }
}

absl::Status PlanArchive::Keep(std::shared_ptr<const KeptPlan> plan) {
  const uint64_t slot = plan->version % kKept;
  {
    const absl::MutexLock lock(&mutex_);
    std::shared_ptr<const KeptPlan>& kept = plans_[slot];
    if (kept != nullptr && kept->text == plan->text) return absl::OkStatus();
    kept = plan;
  }
  if (files_ == nullptr) return absl::OkStatus();
  return files_->WriteAtomically(FileOf(slot), plan->text);
}

absl::StatusOr<std::shared_ptr<const KeptPlan>> PlanArchive::Find(
    uint64_t version) const {
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = plans_.find(version % kKept);
    if (found != plans_.end() && found->second->version == version) {
      return found->second;
    }
  }
  const std::vector<uint64_t> kept = Versions();
  return absl::NotFoundError(absl::StrCat(
      "this node keeps no plan of version ", version, "; it keeps ",
      kept.empty() ? "none" : absl::StrJoin(kept, ", ")));
}

std::vector<uint64_t> PlanArchive::Versions() const {
  std::vector<uint64_t> versions;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [slot, plan] : plans_) versions.push_back(plan->version);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

}  // namespace dfl::app
