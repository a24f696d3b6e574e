#include "tests/support/networks.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace dfl::testing_support {
namespace {

// Splits at spaces: no argument of ours has one.
void Ip(const std::string& arguments) {
  std::vector<std::string> command = {"ip"};
  for (const absl::string_view word :
       absl::StrSplit(arguments, ' ', absl::SkipEmpty())) {
    command.emplace_back(word);
  }
  MustRun(command);
}

bool HideFolder(const char* path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return true;
  return mount("none", path, "tmpfs", 0, nullptr) == 0;
}

std::string EnterOnce() {
  if (geteuid() != 0) return "network namespaces take root";
  if (RunCommand({"ip", "-V"}).exit_code != 0) {
    return "there is no ip (Debian: iproute2)";
  }
  std::error_code error;
  std::filesystem::create_directories("/run/netns", error);
  // The machine's own Avahi daemon must stay out of it, too.
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      !HideFolder("/run/netns") || !HideFolder("/run/dbus") ||
      !HideFolder("/run/avahi-daemon")) {
    return absl::StrCat("namespaces cannot be made here: ",
                        std::strerror(errno));
  }
  if (RunCommand({"ip", "link", "set", "lo", "up"}).exit_code != 0 ||
      RunCommand({"ip", "link", "add", "probe0", "type", "bridge"}).exit_code !=
          0) {
    return "this kernel has no bridges";
  }
  RunCommand({"ip", "link", "del", "probe0"});
  return "";
}

}  // namespace

std::string MustRun(const std::vector<std::string>& command) {
  const Outcome outcome = RunCommand(command);
  EXPECT_EQ(outcome.exit_code, 0)
      << absl::StrJoin(command, " ") << ": " << outcome.err;
  return outcome.out;
}

std::string Networks::Enter() {
  static const auto* const kWhy = new std::string(EnterOnce());
  return *kWhy;
}

Networks::Networks() {
  Ip("link add br0 type bridge mcast_snooping 0");
  Ip("link set br0 up");
}

Networks::~Networks() {
  if (!cut_off_.empty()) JoinAgain();
  // A namespace may take its time to go, and its interfaces with it.
  for (const std::string& cable : cables_) Ip("link del " + cable);
  for (const std::string& host : hosts_) Ip("netns del " + host);
  Ip("link del br0");
}

void Networks::AddNamespace(const std::string& name) {
  hosts_.push_back(name);
  Ip("netns add " + name);
  Ip(absl::StrCat("-n ", name, " link set lo up"));
}

void Networks::AddHost(const std::string& name,
                       const std::vector<std::string>& addresses) {
  AddNamespace(name);
  Ip(absl::StrCat("link add v-", name, " type veth peer name eth0 netns ",
                  name));
  cables_.push_back("v-" + name);
  Ip(absl::StrCat("link set v-", name, " master br0 up"));
  for (const std::string& address : addresses) {
    Ip(absl::StrCat("-n ", name, " addr add ", address, " dev eth0",
                    absl::StrContains(address, ":") ? " nodad" : ""));
  }
  Ip(absl::StrCat("-n ", name, " link set eth0 up"));
}

void Networks::AddHostBehindNat(const std::string& name,
                                const std::string& outside) {
  const std::string router = absl::StrCat(name, "-nat");
  AddHost(router, {outside});
  AddNamespace(name);
  Ip(absl::StrCat("-n ", router,
                  " link add in0 type veth peer name eth0 netns ", name));
  Ip(absl::StrCat("-n ", router, " addr add 192.168.1.1/24 dev in0"));
  Ip(absl::StrCat("-n ", router, " link set in0 up"));
  Ip(absl::StrCat("-n ", name, " addr add 192.168.1.2/24 dev eth0"));
  Ip(absl::StrCat("-n ", name, " link set eth0 up"));
  Ip(absl::StrCat("-n ", name, " route add default via 192.168.1.1"));
  MustRun({"ip", "netns", "exec", router, "sh", "-c",
           "echo 1 > /proc/sys/net/ipv4/ip_forward && iptables -t nat -A "
           "POSTROUTING -o eth0 -j MASQUERADE && iptables -A FORWARD -i eth0 "
           "-m conntrack --ctstate NEW -j DROP"});
}

void Networks::CutOff(const std::vector<std::string>& part) {
  Ip("link add br1 type bridge mcast_snooping 0");
  Ip("link set br1 up");
  for (const std::string& name : part) {
    Ip(absl::StrCat("link set v-", name, " master br1"));
  }
  cut_off_ = part;
}

void Networks::JoinAgain() {
  for (const std::string& name : cut_off_) {
    Ip(absl::StrCat("link set v-", name, " master br0"));
  }
  cut_off_.clear();
  Ip("link del br1");
}

void Networks::CutOneWay(const std::string& to, const std::string& address) {
  MustRun({"ip", "netns", "exec", to, "iptables", "-A", "INPUT", "-s", address,
           "-j", "DROP"});
}

void Networks::HealOneWay(const std::string& to, const std::string& address) {
  MustRun({"ip", "netns", "exec", to, "iptables", "-D", "INPUT", "-s", address,
           "-j", "DROP"});
}

void Networks::Pull(const std::string& name) {
  Ip(absl::StrCat("link set v-", name, " down"));
}

void Networks::Plug(const std::string& name) {
  Ip(absl::StrCat("link set v-", name, " up"));
}

std::vector<std::string> Networks::On(const std::string& name) {
  return {"ip", "netns", "exec", name};
}

}  // namespace dfl::testing_support
