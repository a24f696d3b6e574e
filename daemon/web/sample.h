// What the daemon is and does at a moment, as the metrics and the probes read
// it. The node's loop makes one five times a second and never changes it.
#ifndef DFL_WEB_SAMPLE_H_
#define DFL_WEB_SAMPLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/control/backend.h"

namespace dfl::web {

struct Traffic {
  int64_t sent = 0;
  int64_t received = 0;
};

struct Sample {
  absl::Time at;  // by the steady clock
  control::DaemonStatus daemon;
  // How many members are in each state, by its name; "suspect" is one.
  std::map<std::string, int64_t> members;
  // Bytes of links by the format of the plan that was in force, "random int8";
  // "none" before the first plan.
  std::map<std::string, Traffic> bytes;
  int64_t queued_bytes = 0;  // of all links
  int64_t links = 0;
  // Since a checkpoint was written by this process; nullopt: none was.
  std::optional<absl::Duration> checkpoint_age;
  // How late the loop came to make this, after its timer.
  absl::Duration loop_delay;
  int64_t loop_turns = 0;
  std::string frozen;  // what of the training is, and since when; "": nothing
  // What stands against taking part, one text each, the remedy in it.
  std::vector<std::string> not_ready;
  std::map<std::string, int64_t> log_lines;  // written, by level
};

}  // namespace dfl::web

#endif  // DFL_WEB_SAMPLE_H_
