// Daemons on machines of their own that are told of no peer, and find one
// another all the same. Takes root: see tests/support/networks.h.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/machines.h"
#include "tests/support/process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using DiscoveryTest = MachinesTest;

// As a headless Service of Kubernetes has it: a name with many addresses, and
// an SRV record. Each node finds itself in the list, too.
TEST_F(DiscoveryTest, ByNamesOfANameServer) {
  if (RunCommand({"dnsmasq", "--version"}).exit_code != 0) {
    GTEST_SKIP() << "there is no dnsmasq (Debian: dnsmasq-base)";
  }
  networks_->AddHost("a", {"10.77.0.1/24"});
  networks_->AddHost("b", {"10.77.0.2/24"});
  networks_->AddHost("c", {"10.77.0.3/24"});
  networks_->AddHost("names", {"10.77.0.9/24"});
  RunOn("names", {"dnsmasq", "--no-daemon", "--no-resolv", "--no-hosts",
                  "--user=root", "--pid-file=", "--conf-file=/dev/null",
                  "--host-record=boxes.test,10.77.0.1",
                  "--host-record=boxes.test,10.77.0.2",
                  "--host-record=box-a.test,10.77.0.1",
                  "--srv-host=_dfl._tcp.test,box-a.test,7600"});
  WriteFile(folder_.File("resolv.conf"), "nameserver 10.77.0.9\n");
  const std::vector<std::string> resolved_there = {
      "unshare",
      "--mount",
      "sh",
      "-c",
      absl::StrCat("mount --bind ", folder_.File("resolv.conf"),
                   " /etc/resolv.conf && exec \"$@\""),
      "sh"};
  DaemonProcess& a =
      StartOn("a", "discovery: {dns: [\"boxes.test:7600\"]}\n", resolved_there);
  DaemonProcess& b =
      StartOn("b", "discovery: {dns: [\"boxes.test:7600\"]}\n", resolved_there);
  DaemonProcess& c =
      StartOn("c", "discovery: {srv: [_dfl._tcp.test]}\n", resolved_there);
  EXPECT_TRUE(BecomeLinked(a, "b"));
  EXPECT_TRUE(BecomeLinked(b, "a"));
  EXPECT_TRUE(BecomeLinked(c, "a"));
  EXPECT_THAT(a.log(), HasSubstr("dns: 1 address: 10.77.0.2:7600"));
  EXPECT_THAT(c.log(), HasSubstr("srv: 1 address: 10.77.0.1:7600"));
  EXPECT_THAT(a.log(), Not(HasSubstr("this node itself")));
}

class MdnsTest : public DiscoveryTest,
                 public testing::WithParamInterface<bool> {
 protected:
  static bool V6() { return GetParam(); }
  void AddHost(const std::string& name, int number) {
    networks_->AddHost(name, {V6() ? absl::StrCat("fd77::", number, "/64")
                                   : absl::StrCat("10.77.0.", number, "/24")});
  }
  // What the settings of all have.
  static std::string Of(const std::string& cluster) {
    return absl::StrCat("cluster: ", cluster, "\npeer: {listen: [\"",
                        V6() ? "[::]" : "0.0.0.0", ":7600\"]}\n");
  }
};

TEST_P(MdnsTest, NodesOnOneBridgeMeet) {
  AddHost("a", 1);
  AddHost("b", 2);
  AddHost("stranger", 3);
  DaemonProcess& a = StartOn("a", Of("plant-4"));
  DaemonProcess& stranger = StartOn("stranger", Of("plant-5"));
  DaemonProcess& b = StartOn("b", Of("plant-4"));
  EXPECT_TRUE(BecomeLinked(a, "b"));
  EXPECT_TRUE(BecomeLinked(b, "a"));
  EXPECT_THAT(a.log(),
              HasSubstr("mdns: announces a and looks for others in this "
                        "process, as there is no Avahi daemon"));
  // The one that came first may have been dialled before it found the other.
  EXPECT_THAT(b.log(), HasSubstr(V6() ? "mdns: 1 address: [fd77::1]:7600"
                                      : "mdns: 1 address: 10.77.0.1:7600"));
  EXPECT_FALSE(IsLinked(stranger.Status(), "a"));
  EXPECT_FALSE(IsLinked(stranger.Status(), "b"));
  EXPECT_THAT(stranger.log(), Not(HasSubstr("mdns: 1 address")));
  const auto ended = b.Stop();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 0) << b.log();
}

// One machine has an Avahi daemon and the other has none.
TEST_P(MdnsTest, NodesMeetThroughAnAvahiDaemon) {
  if (RunCommand({"avahi-daemon", "--version"}).exit_code != 0 ||
      RunCommand({"dbus-daemon", "--version"}).exit_code != 0) {
    GTEST_SKIP() << "there is no avahi-daemon or dbus-daemon (Debian: "
                    "avahi-daemon, dbus)";
  }
  AddHost("a", 1);
  AddHost("b", 2);
  AddHost("c", 3);
  const std::vector<std::string> with_avahi = {
      "unshare",
      "--mount",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
      "sh",
      "-c",
      "mount -t tmpfs none /run && mkdir -p /run/dbus /run/avahi-daemon && "
      "dbus-daemon --system --fork && avahi-daemon --daemonize "
      "--no-drop-root --no-chroot --no-rlimits && exec \"$@\"",
      "sh"};
  DaemonProcess& a = StartOn("a", Of("plant-4"), with_avahi);
  DaemonProcess& b = StartOn("b", Of("plant-4"));
  EXPECT_TRUE(BecomeLinked(a, "b"));
  EXPECT_TRUE(BecomeLinked(b, "a"));
  EXPECT_THAT(a.log(), HasSubstr("mdns: announces a and looks for others "
                                 "through this machine's Avahi daemon"));
  if (V6()) return;
  // What is announced changes.
  MustRun({"ip", "-n", "a", "addr", "add", "10.77.0.21/24", "dev", "eth0"});
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return absl::StrContains(a.log(), "10.77.0.1:7600, 10.77.0.21:7600");
  }));
  DaemonProcess& c = StartOn("c", Of("plant-4"));
  EXPECT_TRUE(BecomeLinked(c, "a"));
}

INSTANTIATE_TEST_SUITE_P(BothProtocols, MdnsTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& param) {
                           return param.param ? "IPv6" : "IPv4";
                         });

// No address but the one that IPv6 gives each link.
TEST_F(DiscoveryTest, ByMdnsOnALinkWithoutAddresses) {
  networks_->AddHost("a", {});
  networks_->AddHost("b", {});
  constexpr char kSettings[] =
      "cluster: plant-4\npeer: {listen: [\"[::]:7600\"]}\n";
  // The kernel makes sure that nobody else has the address.
  for (const char* host : {"a", "b"}) {
    ASSERT_TRUE(Eventually(kPatience, [host] {
      const std::string addresses =
          MustRun({"ip", "-n", host, "-6", "addr", "show", "dev", "eth0"});
      return addresses.find("fe80") != std::string::npos &&
             addresses.find("tentative") == std::string::npos;
    }));
  }
  DaemonProcess& a = StartOn("a", kSettings);
  DaemonProcess& b = StartOn("b", kSettings);
  EXPECT_TRUE(BecomeLinked(a, "b"));
  EXPECT_TRUE(BecomeLinked(b, "a"));
  EXPECT_THAT(absl::StrCat(a.log(), b.log()), HasSubstr("%eth0]:7600"));
}

// As the README tells it: a name, a network, data, and a plan given to either.
TEST_F(DiscoveryTest, AFirstRunOnTwoMachines) {
  networks_->AddHost("box-a", {"10.77.0.1/24"});
  networks_->AddHost("box-b", {"10.77.0.2/24"});
  StartOn("box-a", "cluster: plant-4\n");
  DaemonProcess& b = StartOn("box-b", "cluster: plant-4\n");
  WriteFile(folder_.File("plan.yaml"),
            "model: {kind: logistic, classes: 3}\n"
            "algorithm: {name: pame, knobs: {nu: 1, kappa: [5, 10]}}\n");
  ASSERT_TRUE(BecomeLinked(b, "box-a"));
  const Outcome applied =
      RunCommand({Program("dflctl"), "--target=" + b.target(), "plan", "apply",
                  folder_.File("plan.yaml"), "--start"});
  EXPECT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  for (const auto& [name, daemon] : daemons_) {
    EXPECT_TRUE(daemon->StatusBecomes(kPatience,
                                      [](const client::NodeStatus& status) {
                                        return status.step >= 20 &&
                                               status.models_received > 0;
                                      }))
        << name;
  }
}

// Two boxes that can only dial out, and one that can be dialled.
TEST_F(DiscoveryTest, BehindNat) {
  if (RunCommand({"iptables", "--version"}).exit_code != 0) {
    GTEST_SKIP() << "there is no iptables (Debian: iptables)";
  }
  networks_->AddHost("open", {"10.77.0.1/24"});
  networks_->AddHostBehindNat("box-1", "10.77.0.11/24");
  networks_->AddHostBehindNat("box-2", "10.77.0.12/24");
  DaemonProcess& open = StartOn("open", "");
  constexpr char kBehind[] =
      "peers: [\"10.77.0.1:7600\"]\npeer: {dialable: off}\n";
  DaemonProcess& box_1 = StartOn("box-1", kBehind);
  DaemonProcess& box_2 = StartOn("box-2", kBehind);
  EXPECT_TRUE(BecomeLinked(open, "box-1"));
  EXPECT_TRUE(BecomeLinked(open, "box-2"));
  EXPECT_TRUE(BecomeLinked(box_1, "open"));
  EXPECT_TRUE(BecomeLinked(box_2, "open"));

  // Given to one, it reaches all; the graph has no edge that cannot be.
  WriteFile(folder_.File("plan.yaml"), R"(
participants: all
model: {kind: logistic, classes: 3}
batch_size: 8
algorithm: {name: d-psgd, knobs: {eta: 0.05}}
evaluation: {every_steps: 0}
)");
  const Outcome applied = RunCommand(
      {Program("dflctl"), "--target=" + open.target(), "plan", "apply",
       folder_.File("plan.yaml"), "--start", "--yes", "--wait"});
  EXPECT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  for (const char* box : {"box-1", "box-2"}) {
    EXPECT_TRUE(daemons_[box]->StatusBecomes(
        kPatience,
        [](const client::NodeStatus& status) {
          return status.step >= 20 && status.models_received >= 10;
        }))
        << box;
  }
}

// A box that is up before its network: it says so, and meets the others later.
TEST_F(DiscoveryTest, AMachineWhoseCableComesLater) {
  networks_->AddHost("a", {"10.77.0.1/24"});
  networks_->AddHost("b", {"10.77.0.2/24"});
  MustRun({"ip", "-n", "a", "link", "set", "eth0", "down"});
  DaemonProcess& a = StartOn("a", "cluster: plant-4\n");
  DaemonProcess& b = StartOn("b", "cluster: plant-4\n");
  EXPECT_THAT(a.log(), AllOf(HasSubstr("peer.advertise: found nothing"),
                             HasSubstr("peer.dialable: off"),
                             HasSubstr("it starts all the same")));
  MustRun({"ip", "-n", "a", "link", "set", "eth0", "up"});
  EXPECT_TRUE(BecomeLinked(a, "b"));
  EXPECT_TRUE(BecomeLinked(b, "a"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return absl::StrContains(a.log(),
                             "others reach this node at 10.77.0.1:7600");
  })) << a.log();
}

}  // namespace
}  // namespace dfl::testing_support
