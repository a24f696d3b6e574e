#include "daemon/discovery/names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/host_port.h"

namespace dfl::discovery {
namespace {

void SortOnce(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Whether a host stands there in numbers, so that there is nothing to resolve.
bool IsNumeric(const std::string& host) {
  in6_addr parsed = {};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &parsed) ==
             1;
}

Resolved Numeric(const HostPort& address) { return {{address.ToString()}, ""}; }

// `before` is what the name had last.
Resolved Resolve(const HostPort& address, const Resolver& resolver,
                 const Resolved& before) {
  if (IsNumeric(address.host)) return Numeric(address);
  Resolved now;
  const auto hosts = resolver.addresses(address.host);
  if (!hosts.ok()) {
    now.trouble =
        absl::StrCat("name ", address.host, ": ", hosts.status().message());
    if (!absl::IsNotFound(hosts.status())) now.addresses = before.addresses;
    return now;
  }
  for (const std::string& host : *hosts) {
    now.addresses.push_back(HostPort{host, address.port}.ToString());
  }
  SortOnce(now.addresses);
  if (now.addresses.empty()) {
    now.trouble = absl::StrCat("name ", address.host, ": it has no address");
  }
  return now;
}

// All that is known, and what is amiss.
Findings Together(const std::map<std::string, Resolved>& all) {
  Findings findings;
  std::vector<std::string> troubles;
  for (const auto& [name, resolved] : all) {
    findings.addresses.insert(findings.addresses.end(),
                              resolved.addresses.begin(),
                              resolved.addresses.end());
    if (!resolved.trouble.empty()) troubles.push_back(resolved.trouble);
  }
  SortOnce(findings.addresses);
  SortOnce(troubles);
  findings.trouble = absl::StrJoin(troubles, "; ");
  return findings;
}

}  // namespace

Findings ResolveNames(const std::vector<std::string>& list,
                      const Resolver& resolver,
                      std::map<std::string, Resolved>& known) {
  std::map<std::string, Resolved> now;
  for (const std::string& name : list) {
    const auto address = ParseHostPort(name);
    if (address.ok()) now[name] = Resolve(*address, resolver, known[name]);
  }
  known = std::move(now);
  return Together(known);
}

// Shared with a look that may outlive the source.
class NameList::List {
 public:
  List(const std::vector<std::string>& names, Resolver resolver)
      : resolver_(std::move(resolver)) {
    for (const std::string& name : names) Add(name);
  }

  void Add(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto address = ParseHostPort(name);
    if (!address.ok()) return;
    const absl::MutexLock lock(&mutex_);
    resolved_.emplace(
        name, IsNumeric(address->host) ? Numeric(*address) : Resolved());
  }

  void Remove(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    resolved_.erase(name);
  }

  std::map<std::string, Resolved> resolved() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return resolved_;
  }

  // Without a look.
  Findings Known() const { return Together(resolved()); }

  Findings Look() ABSL_LOCKS_EXCLUDED(mutex_) {
    for (const auto& [name, before] : resolved()) {
      Resolved now = Resolve(*ParseHostPort(name), resolver_, before);
      const absl::MutexLock lock(&mutex_);
      const auto it = resolved_.find(name);
      if (it != resolved_.end()) it->second = std::move(now);
    }
    return Known();
  }

 private:
  const Resolver resolver_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Resolved> resolved_ ABSL_GUARDED_BY(mutex_);
};

NameList::NameList(std::string name, const std::vector<std::string>& list,
                   Resolver resolver, PollPeriods periods)
    : list_(std::make_shared<List>(list, std::move(resolver))),
      source_(
          std::move(name), [list = list_] { return list->Look(); }, periods) {}

void NameList::Start(Tell tell) {
  Findings known = list_->Known();
  if (!known.addresses.empty()) tell(std::move(known));
  source_.Start(std::move(tell));
}

void NameList::Add(const std::string& address) {
  list_->Add(address);
  source_.LookNow();
}

void NameList::Remove(const std::string& address) {
  list_->Remove(address);
  source_.LookNow();
}

std::map<std::string, Resolved> NameList::resolved() const {
  return list_->resolved();
}

namespace {

// Of one service; no network that lives has more seeds.
constexpr size_t kMostHosts = 1024;

// By the name of a host.
using Hosts = std::map<std::string, Resolved>;

// What one service has; `before` is what it had, `last` what the hosts of the
// last look had, and `hosts` takes those of this one.
Resolved LookUpService(const std::string& service, const Resolver& resolver,
                       const Resolved& before, const Hosts& last,
                       Hosts& hosts) {
  Resolved now;
  const auto found = resolver.services(service);
  if (!found.ok()) {
    now.trouble =
        absl::StrCat("service ", service, ": ", found.status().message());
    if (!absl::IsNotFound(found.status())) {
      now.addresses = before.addresses;
      hosts.insert(last.begin(), last.end());
    }
    return now;
  }
  std::vector<std::string> troubles;
  size_t count = 0;
  for (const HostPort& host : *found) {
    const std::string name = host.ToString();
    if (++count > kMostHosts) {
      troubles.push_back(absl::StrCat("service ", service, ": only the first ",
                                      kMostHosts, " hosts are looked up"));
      break;
    }
    const auto known = last.find(name);
    const Resolved& resolved = hosts[name] = Resolve(
        host, resolver, known == last.end() ? Resolved() : known->second);
    now.addresses.insert(now.addresses.end(), resolved.addresses.begin(),
                         resolved.addresses.end());
    if (!resolved.trouble.empty()) {
      troubles.push_back(
          absl::StrCat("service ", service, ": ", resolved.trouble));
    }
  }
  SortOnce(now.addresses);
  SortOnce(troubles);
  now.trouble = absl::StrJoin(troubles, "; ");
  return now;
}

}  // namespace

std::unique_ptr<Source> MakeServiceSource(
    const std::vector<std::string>& services, Resolver resolver,
    PollPeriods periods) {
  // Touched by the looks alone, which come one after the other.
  struct Known {
    std::map<std::string, Resolved> services;
    Hosts hosts;
  };
  auto known = std::make_shared<Known>();
  for (const std::string& service : services) known->services[service] = {};
  return std::make_unique<PolledSource>(
      "srv",
      [known, resolver = std::move(resolver)] {
        Hosts hosts;
        for (auto& [service, resolved] : known->services) {
          resolved =
              LookUpService(service, resolver, resolved, known->hosts, hosts);
        }
        known->hosts = std::move(hosts);  // those that are gone are forgotten
        return Together(known->services);
      },
      periods);
}

}  // namespace dfl::discovery
