#include "daemon/discovery/discovery.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::discovery {
namespace {

// "3 addresses: a:1, b:1, c:1", without what a person would not read.
std::string ListText(const std::vector<std::string>& addresses) {
  constexpr size_t kMostShown = 8;
  if (addresses.empty()) return "no address";
  const auto end = addresses.begin() + static_cast<std::ptrdiff_t>(std::min(
                                           addresses.size(), kMostShown));
  return absl::StrCat(addresses.size(),
                      addresses.size() == 1 ? " address: " : " addresses: ",
                      absl::StrJoin(addresses.begin(), end, ", "),
                      addresses.size() > kMostShown ? ", ..." : "");
}

}  // namespace

Discovery::Discovery(DiscoveryHooks hooks) : hooks_(std::move(hooks)) {}

Discovery::~Discovery() { Stop(); }

void Discovery::Add(std::shared_ptr<Source> source) {
  {
    const absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    sources_.push_back(source);
  }
  source->Start([this, name = source->name()](Findings findings) {
    Take(name, std::move(findings));
  });
}

void Discovery::Stop() {
  std::vector<std::shared_ptr<Source>> sources;
  {
    const absl::MutexLock lock(&mutex_);
    stopped_ = true;
    sources.swap(sources_);
  }
  for (const auto& source : sources) source->Stop();
}

std::map<std::string, Findings> Discovery::findings() const {
  const absl::MutexLock lock(&mutex_);
  return findings_;
}

void Discovery::Take(const std::string& source, Findings findings) {
  std::vector<std::string>& addresses = findings.addresses;
  if (hooks_.is_own) {
    addresses.erase(
        std::remove_if(addresses.begin(), addresses.end(), hooks_.is_own),
        addresses.end());
  }
  if (addresses.size() > kMostCandidates) {
    findings.trouble =
        absl::StrCat(findings.trouble, findings.trouble.empty() ? "" : "; ",
                     "it has ", addresses.size(), " addresses, and the first ",
                     kMostCandidates, " are used");
    addresses.resize(kMostCandidates);
  }
  const absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  const auto [it, first] = findings_.try_emplace(source);
  Findings& known = it->second;
  if (findings.trouble != known.trouble) {
    hooks_.note(!findings.trouble.empty(),
                findings.trouble.empty()
                    ? absl::StrCat(source, ": all is well again")
                    : absl::StrCat(source, ": ", findings.trouble));
  }
  const bool changed = addresses != known.addresses;
  known = std::move(findings);
  if (changed) {
    hooks_.note(false, absl::StrCat(source, ": ", ListText(known.addresses)));
  }
  if (changed || first) hooks_.changed(source, known.addresses);
}

}  // namespace dfl::discovery
