// What the machine under the daemon is like, as far as a diagnosis looks at it.
#ifndef DFL_APP_EYES_MACHINE_FACTS_H_
#define DFL_APP_EYES_MACHINE_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dfl::app {

// The way to a peer.
struct PathFacts {
  std::string address;  // "host:port"
  int64_t mtu = 0;      // bytes of a packet, as the system knows it now
};

struct MachineFacts {
  // Whether the clock is kept right by NTP or the like; nullopt: not known.
  std::optional<bool> clock_synchronised;
  int64_t processors = 0;  // that the process may run on, by quota and affinity
  int64_t disk_free_bytes = -1;  // of the state's file system; -1: not known
  bool disk_writable = true;     // whether files can be made in state_dir
  int64_t open_files_limit = 0;
  // The libraries that LibTorch multiplies with, by path: libopenblas, libblas.
  std::vector<std::string> blas;
  std::string openblas_threads;  // OPENBLAS_NUM_THREADS; "": not set
  std::vector<PathFacts> paths;
};

// Reads them; `peers` are the addresses of peers that are linked. May take some
// milliseconds.
MachineFacts ReadMachineFacts(const std::string& state_dir,
                              const std::vector<std::string>& peers);

// The paths of libraries for linear algebra in a text such as /proc/self/maps.
std::vector<std::string> BlasIn(const std::string& maps);

}  // namespace dfl::app

#endif  // DFL_APP_EYES_MACHINE_FACTS_H_
