// Sources that resolve names: lists of host:port, and DNS services.
//
// Every address of a name is a candidate. A name that is not resolved keeps
// the addresses that it had last: a name server that is away for a while makes
// nobody disappear. A name that is known to have no address any more loses
// them.
#ifndef DFL_DISCOVERY_NAMES_H_
#define DFL_DISCOVERY_NAMES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/discovery/polled_source.h"
#include "daemon/discovery/resolver.h"
#include "daemon/discovery/source.h"

namespace dfl::discovery {

// What became of one name.
struct Resolved {
  std::vector<std::string> addresses;  // "host:port" in numbers
  std::string trouble;                 // why there are none, or older ones
};

// Resolves every "host:port" of `list`, and forgets the others. `known` is what
// became of them the last time.
Findings ResolveNames(const std::vector<std::string>& list,
                      const Resolver& resolver,
                      std::map<std::string, Resolved>& known);

// A list of "host:port", which can grow and shrink. Thread-safe.
class NameList final : public Source {
 public:
  // `name` is the source's.
  NameList(std::string name, const std::vector<std::string>& list,
           Resolver resolver, PollPeriods periods = {});

  const std::string& name() const override { return source_.name(); }
  // What stands there in numbers is told at once: no name holds it up.
  void Start(Tell tell) override;
  void Stop() override { source_.Stop(); }

  // Both do nothing where that is so already; the names are looked up at once.
  void Add(const std::string& address);
  void Remove(const std::string& address);

  // Of each name. Numbers are resolved from the start.
  std::map<std::string, Resolved> resolved() const;

 private:
  class List;

  const std::shared_ptr<List> list_;
  PolledSource source_;
};

// DNS services, such as _dfl._tcp.example.org.
std::unique_ptr<Source> MakeServiceSource(
    const std::vector<std::string>& services, Resolver resolver,
    PollPeriods periods = {});

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_NAMES_H_
