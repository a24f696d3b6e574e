#include "daemon/app/eyes/machine_facts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/app/compute/cpu_quota.h"
#include "daemon/base/host_port.h"

namespace dfl::app {
namespace {

// Of systemd-timesyncd; a hardened unit may not ask the kernel.
constexpr char kTimesyncMark[] = "/run/systemd/timesync/synchronized";

std::optional<bool> ClockSynchronised() {
  if (access(kTimesyncMark, F_OK) == 0) return true;
  timex clock{};  // asks, and changes nothing
  const int state = adjtimex(&clock);
  if (state < 0) return std::nullopt;
  return state != TIME_ERROR;
}

// Of the way to a numeric address; 0: not known. No packet is sent.
int64_t MtuTo(const HostPort& place) {
  sockaddr_storage address{};
  socklen_t length = 0;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  int level = IPPROTO_IP;
  int option = IP_MTU;
  if (inet_pton(AF_INET, place.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(place.port));
    length = sizeof(v4);
  } else if (inet_pton(AF_INET6, place.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(place.port));
    length = sizeof(v6);
    level = IPPROTO_IPV6;
    option = IPV6_MTU;
  } else {
    return 0;
  }
  const int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  const bool known =
      connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      getsockopt(fd, level, option, &mtu, &size) == 0;
  close(fd);
  return known ? mtu : 0;
}

}  // namespace

std::vector<std::string> BlasIn(const std::string& maps) {
  std::set<std::string> found;
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t slash = line.find('/');
    if (slash == absl::string_view::npos) continue;
    const absl::string_view path = line.substr(slash);
    const absl::string_view name = path.substr(path.rfind('/') + 1);
    if (absl::StartsWith(name, "libopenblas") ||
        absl::StartsWith(name, "libblas") || absl::StartsWith(name, "libmkl")) {
      found.emplace(path);
    }
  }
  return {found.begin(), found.end()};
}

MachineFacts ReadMachineFacts(const std::string& state_dir,
                              const std::vector<std::string>& peers) {
  MachineFacts facts;
  facts.clock_synchronised = ClockSynchronised();
  facts.processors = FindCpuQuota().count();
  struct statvfs disk{};
  if (statvfs(state_dir.c_str(), &disk) == 0) {
    facts.disk_free_bytes = static_cast<int64_t>(disk.f_bavail) *
                            static_cast<int64_t>(disk.f_frsize);
  }
  facts.disk_writable = access(state_dir.c_str(), W_OK | X_OK) == 0;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    facts.open_files_limit = static_cast<int64_t>(files.rlim_cur);
  }
  std::ifstream maps("/proc/self/maps");
  facts.blas = BlasIn({std::istreambuf_iterator<char>(maps), {}});
  const char* threads = std::getenv("OPENBLAS_NUM_THREADS");
  if (threads != nullptr) facts.openblas_threads = threads;
  for (const std::string& address : peers) {
    const absl::StatusOr<HostPort> place = ParseHostPort(address);
    if (!place.ok()) continue;
    const int64_t mtu = MtuTo(*place);
    if (mtu > 0) facts.paths.push_back({address, mtu});
  }
  return facts;
}

}  // namespace dfl::app
