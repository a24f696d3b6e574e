#include "daemon/simports/sim_files.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"

namespace dfl::simports {
namespace {

void CheckName(const std::string& name) {
  DFL_CHECK(!name.empty());
  DFL_CHECK(!absl::StrContains(name, "/"));
}

}  // namespace

absl::StatusOr<std::string> SimFiles::Read(const std::string& name) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  const auto found = contents_.find(name);
  if (found == contents_.end()) {
    return absl::NotFoundError(absl::StrCat("no file \"", name, "\""));
  }
  return found->second;
}

absl::Status SimFiles::WriteAtomically(const std::string& name,
                                       absl::string_view content) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  int64_t used = static_cast<int64_t>(content.size());
  for (const auto& [other, bytes] : contents_) used += bytes.size();
  if (capacity_ >= 0 && used > capacity_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("writing \"", name, "\" (", content.size(),
                     " bytes): no space left on the disk"));
  }
  contents_[name] = std::string(content);
  last_written_ = name;
  ++writes_;
  if (!lies_) durable_ = contents_;
  return absl::OkStatus();
}

absl::Status SimFiles::Remove(const std::string& name) {
  CheckName(name);
  DFL_RETURN_IF_ERROR(failure_);
  contents_.erase(name);
  if (!lies_) durable_ = contents_;
  return absl::OkStatus();
}

void SimFiles::Crash(Rng& rng) {
  std::set<std::string> names;
  for (const auto& [name, content] : contents_) names.insert(name);
  for (const auto& [name, content] : durable_) names.insert(name);
  Contents after;
  for (const std::string& name : names) {
    const auto now = contents_.find(name);
    const auto old = durable_.find(name);
    const bool unsynced = now == contents_.end() || old == durable_.end() ||
                          now->second != old->second;
    const uint64_t fate = unsynced ? rng.Below(3) : 0;
    if (fate == 0) {
      if (now != contents_.end()) after[name] = now->second;
    } else if (fate == 1) {
      if (old != durable_.end()) after[name] = old->second;
    } else if (now != contents_.end()) {
      after[name] = now->second.substr(0, rng.Below(now->second.size() + 1));
    }
  }
  contents_ = after;
  durable_ = after;
}

void SimFiles::TearLastWrite() {
  const auto found = contents_.find(last_written_);
  if (found == contents_.end()) return;
  found->second.resize(found->second.size() / 2);
  durable_[last_written_] = found->second;
}

void SimFiles::Empty() {
  contents_.clear();
  durable_.clear();
  last_written_.clear();
}

void SimFiles::FlipBit(const std::string& name, int64_t bit) {
  const auto found = contents_.find(name);
  DFL_CHECK(found != contents_.end());
  DFL_CHECK(bit >= 0 && bit / 8 < static_cast<int64_t>(found->second.size()));
  found->second[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  durable_[name] = found->second;
}

std::vector<std::string> SimFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, content] : contents_) names.push_back(name);
  return names;
}

}  // namespace dfl::simports
