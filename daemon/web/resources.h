// What this process takes of the machine, as the system tells it.
#ifndef DFL_WEB_RESOURCES_H_
#define DFL_WEB_RESOURCES_H_

#include <cstdint>
#include <string>

namespace dfl::web {

struct Resources {
  double cpu_seconds = 0;
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t threads = 0;
  int64_t open_files = 0;
  int64_t max_open_files = 0;
  double start_time = 0;  // seconds since 1970
  // Free for the daemon where its state is; -1: the system does not say.
  int64_t state_free_bytes = -1;
};

// Reads /proc and the file system of `state_dir`. What cannot be read stays 0.
Resources ReadResources(const std::string& state_dir);

}  // namespace dfl::web

#endif  // DFL_WEB_RESOURCES_H_
