#include "daemon/app/network/known_members.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/discovery/address_file.h"

namespace dfl::app {
namespace {

constexpr size_t kMostBytes = 64 << 10;

bool HasOthers(const std::map<NodeId, runtime::Member>& members,
               const NodeId& self) {
  return std::any_of(members.begin(), members.end(), [&](const auto& entry) {
    return entry.first != self && entry.second.present();
  });
}

}  // namespace

KnownMembers::KnownMembers(
    NodeId self, ports::Files& files, ports::Loop& loop, ports::Worker& worker,
    std::function<void(std::vector<std::string>)> candidates,
    std::function<void(const std::string&)> warn)
    : self_(std::move(self)),
      files_(files),
      loop_(loop),
      worker_(worker),
      candidates_(std::move(candidates)),
      warn_(std::move(warn)) {}

void KnownMembers::Start() {
  const absl::StatusOr<std::string> text = files_.Read(kFile);
  if (!text.ok() || text->size() > kMostBytes) return;
  absl::StatusOr<std::vector<std::string>> addresses =
      discovery::ParseAddressFile(*text);
  if (!addresses.ok() || addresses->empty()) return;
  on_disk_ = *text;
  offered_ = true;
  offered_until_ = loop_.Now() + kStart;
  candidates_(*std::move(addresses));
}

void KnownMembers::Look(const std::map<NodeId, runtime::Member>& members,
                        uint64_t changes) {
  const absl::Time now = loop_.Now();
  if (offered_ && now >= offered_until_ && HasOthers(members, self_)) {
    offered_ = false;
    candidates_({});
  }
  if (std::exchange(seen_, changes) != changes) {
    std::string text = TextOf(members);
    if (!text.empty() && text != text_) {
      text_ = std::move(text);
      due_ = std::max(now + kSettle, written_ + kPause);
    }
  }
  if (now >= due_ && !writing_) Write();
}

std::string KnownMembers::TextOf(
    const std::map<NodeId, runtime::Member>& members) const {
  // Those behind this node's own name, around in a ring: not all nodes of a
  // network go to the same few.
  std::string text;
  size_t kept = 0;
  auto at = members.upper_bound(self_);
  for (size_t k = 0; k < members.size() && kept < kMost; ++k, ++at) {
    if (at == members.end()) at = members.begin();
    if (at->first == self_ || !at->second.present()) continue;
    if (at->second.facts.addresses.empty()) continue;
    for (const std::string& address : at->second.facts.addresses) {
      absl::StrAppend(&text, address, "\n");
    }
    ++kept;
  }
  return text;
}

void KnownMembers::Write() {
  due_ = absl::InfiniteFuture();
  written_ = loop_.Now();
  if (text_ == on_disk_) return;
  writing_ = true;
  auto status = std::make_shared<absl::Status>();
  worker_.Run([files = &files_, text = text_,
               status] { *status = files->WriteAtomically(kFile, text); },
              [this, text = text_, status] {
                writing_ = false;
                if (status->ok()) {
                  on_disk_ = text;
                  return;
                }
                due_ = std::min(due_, loop_.Now() + kPause);  // once more
                warn_(absl::StrCat(
                    "where other members are is not kept for the next start: ",
                    status->message()));
              });
}

}  // namespace dfl::app
