#include "tests/network/living_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/check.h"

namespace dfl::testing_support {

std::vector<int> FreePorts(int count) {
  std::vector<int> sockets;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    DFL_CHECK(fd >= 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    DFL_CHECK(bind(fd, any, length) == 0);
    DFL_CHECK(getsockname(fd, any, &length) == 0);
    sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) close(fd);
  return ports;
}

LivingNetwork::LivingNetwork(LivingNetworkOptions options)
    : options_(std::move(options)), seed_ports_(FreePorts(options_.seeds)) {
  for (const int port : seed_ports_) {
    seeds_.push_back(absl::StrCat("127.0.0.1:", port));
  }
  WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
  WriteBlobs(folder_.File("test.csv"), 30, 4, 3, 2);
}

std::string LivingNetwork::NameOf(int i) { return absl::StrFormat("n%02d", i); }

void LivingNetwork::Add(int count) {
  for (int k = 0; k < count; ++k) {
    const int i = size();
    DaemonProcess::Options options;
    options.name = NameOf(i);
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.test_csv = folder_.File("test.csv");
    options.peers = seeds_;
    if (i < options_.seeds) options.port = seed_ports_[i];
    options.extra_yaml = options_.extra_yaml;
    daemons_.push_back(std::make_unique<DaemonProcess>(options));
    up_.push_back(false);
  }
}

bool LivingNetwork::StartFrom(int first) {
  for (int i = first; i < size(); ++i) daemons_[i]->Launch();
  for (int i = first; i < size(); ++i) {
    if (!daemons_[i]->AwaitReady(absl::Seconds(120))) {
      error_ = absl::StrCat(NameOf(i), " did not start:\n", daemons_[i]->log());
      return false;
    }
    up_[i] = true;
  }
  return true;
}

void LivingNetwork::Kill(int i) {
  up_[i] = false;
  daemons_[i]->Kill();
}

bool LivingNetwork::Stop(int i) {
  up_[i] = false;
  return daemons_[i]->Stop().has_value();
}

int LivingNetwork::up() const {
  return static_cast<int>(std::count(up_.begin(), up_.end(), true));
}

std::map<std::string, client::Member> LivingNetwork::TableOf(int i) {
  std::map<std::string, client::Member> table;
  auto members = daemons_[i]->client().Members({});
  if (!members.ok()) return table;
  for (client::Member& member : members->members) {
    table.emplace(member.node, std::move(member));
  }
  return table;
}

bool LivingNetwork::TableAgrees(int i) {
  const auto table = TableOf(i);
  for (int j = 0; j < size(); ++j) {
    const auto found = table.find(NameOf(j));
    const bool present = found != table.end() && found->second.present();
    if (present == up_[j]) continue;
    error_ = absl::StrCat(NameOf(i), " takes ", NameOf(j), " for ",
                          found == table.end() ? "unknown"
                          : present            ? "present"
                                               : "gone",
                          ", which is ", up_[j] ? "up" : "down");
    return false;
  }
  return true;
}

absl::Duration LivingNetwork::UntilTablesAgree(absl::Duration limit) {
  const absl::Time began = SteadyNow();
  int next = 0;  // those before agreed when they were asked last
  const bool agree = Eventually(limit, [&] {
    for (; next < size(); ++next) {
      if (up_[next] && !TableAgrees(next)) return false;
    }
    // Once more from the first, for an earlier one may have changed its mind.
    for (int i = 0; i < size(); ++i) {
      if (!up_[i] || TableAgrees(i)) continue;
      next = i;
      return false;
    }
    return true;
  });
  return agree ? SteadyNow() - began : absl::InfiniteDuration();
}

absl::Duration LivingNetwork::UntilAllSee(const std::string& node,
                                          const Look& look,
                                          absl::Duration limit) {
  const absl::Time began = SteadyNow();
  int next = 0;
  const bool seen = Eventually(limit, [&] {
    for (; next < size(); ++next) {
      if (!up_[next]) continue;
      const auto table = TableOf(next);
      const auto found = table.find(node);
      if (found == table.end() || !look(found->second)) {
        error_ = absl::StrCat(NameOf(next), " does not see it of ", node);
        return false;
      }
    }
    return true;
  });
  return seen ? SteadyNow() - began : absl::InfiniteDuration();
}

Outcome LivingNetwork::Dflctl(int i, std::vector<std::string> arguments) {
  std::vector<std::string> command = {Program("dflctl"),
                                      "--target=" + daemons_[i]->target()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command);
}

}  // namespace dfl::testing_support
