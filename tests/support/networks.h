// Machines of a test that have networks of their own: network namespaces on one
// switch. All of it is inside a network and a mount namespace of the test's
// process, so nothing is left of it when that ends, however it ends.
#ifndef DFL_TESTS_SUPPORT_NETWORKS_H_
#define DFL_TESTS_SUPPORT_NETWORKS_H_

#include <string>
#include <vector>

namespace dfl::testing_support {

class Networks {
 public:
  // Moves this process into namespaces of its own, once. Returns why that
  // cannot be done here, such as a lack of rights; "": it is done. Call it
  // while the process has one thread.
  static std::string Enter();

  // A switch without machines. Enter must have returned "".
  Networks();
  ~Networks();  // the machines' processes must have ended
  Networks(const Networks&) = delete;
  Networks& operator=(const Networks&) = delete;

  // A machine with `addresses` ("10.77.0.1/24", "fd77::1/64") on its interface
  // eth0 at the switch; without any it has a link-local one of IPv6.
  void AddHost(const std::string& name,
               const std::vector<std::string>& addresses);
  // A machine 192.168.1.2 behind the router NAME-nat, which has `outside` at
  // the switch and hides the machine behind that address.
  void AddHostBehindNat(const std::string& name, const std::string& outside);

  // Cuts the machines of `part` off from all others, as a cable that is pulled:
  // what is sent is lost, and nobody is told. Once at a time.
  void CutOff(const std::vector<std::string>& part);
  void JoinAgain();  // they are back on the one switch

  // What the machine of the IPv4 address `address` sends to `to` is lost; the
  // other direction is as before. Takes iptables.
  static void CutOneWay(const std::string& to, const std::string& address);
  static void HealOneWay(const std::string& to, const std::string& address);

  // Takes a machine's interface down, or up again.
  static void Pull(const std::string& name);
  static void Plug(const std::string& name);

  // What makes a command run on a machine.
  static std::vector<std::string> On(const std::string& name);

 private:
  void AddNamespace(const std::string& name);

  std::vector<std::string> hosts_;
  std::vector<std::string> cables_;  // between them and the switch
  std::vector<std::string> cut_off_;
};

// Runs a command that must succeed; returns what it wrote.
std::string MustRun(const std::vector<std::string>& command);

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_NETWORKS_H_
