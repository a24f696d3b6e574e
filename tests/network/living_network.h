// Many real daemons on loopback that find one another through seeds.
#ifndef DFL_TESTS_NETWORK_LIVING_NETWORK_H_
#define DFL_TESTS_NETWORK_LIVING_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/control_client.h"
#include "tests/support/daemon_process.h"
#include "tests/support/process.h"

namespace dfl::testing_support {

// Ports of loopback that were free when they were asked for.
std::vector<int> FreePorts(int count);

struct LivingNetworkOptions {
  int seeds = 2;  // that every daemon is told of
  std::string extra_yaml;
};

class LivingNetwork {
 public:
  // What one daemon knows of another.
  using Look = std::function<bool(const client::Member&)>;

  explicit LivingNetwork(LivingNetworkOptions options = {});

  // Adds daemons named n00, n01, ...; they are not started. The first
  // `seeds` of all are the seeds.
  void Add(int count);
  int size() const { return static_cast<int>(daemons_.size()); }
  DaemonProcess& operator[](int i) { return *daemons_[i]; }
  static std::string NameOf(int i);

  // Starts those from `first` on, at once. False: one did not listen; its log
  // is in error().
  bool StartFrom(int first);
  const std::string& error() const { return error_; }

  void Kill(int i);
  bool Stop(int i);  // SIGTERM; false: not gone within 10 s
  bool IsUp(int i) const { return up_[i]; }
  int up() const;

  // The members' table of `i`; empty where it does not answer.
  std::map<std::string, client::Member> TableOf(int i);

  // Waits until every daemon that is up has a table in which exactly those
  // that are up are present. Returns how long it took; infinite: it did not,
  // and error() says who is missing where.
  absl::Duration UntilTablesAgree(absl::Duration limit);
  // Waits until every daemon that is up says `look` of the member `node`.
  absl::Duration UntilAllSee(const std::string& node, const Look& look,
                             absl::Duration limit);

  // Runs dflctl on daemon `i`.
  Outcome Dflctl(int i, std::vector<std::string> arguments);
  const std::string& folder() const { return folder_.path(); }

 private:
  bool TableAgrees(int i);

  const LivingNetworkOptions options_;
  TemporaryFolder folder_;
  std::vector<std::string> seeds_;
  std::vector<int> seed_ports_;
  std::vector<std::unique_ptr<DaemonProcess>> daemons_;
  std::vector<bool> up_;
  std::string error_;
};

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_NETWORK_LIVING_NETWORK_H_
