// A child process of a test: started with arguments and an environment, its
// output kept, ended for certain when the object goes.
#ifndef DFL_TESTS_SUPPORT_PROCESS_H_
#define DFL_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace dfl::testing_support {

// How a process ended.
struct Exit {
  int code = -1;   // of exit; -1 when a signal ended it
  int signal = 0;  // that ended it; 0: none
};

class Process {
 public:
  struct Options {
    std::vector<std::string> command;  // [0] is the program's path
    std::map<std::string, std::string> environment;  // on top of ours
    std::string stdout_file;                         // both are created anew
    std::string stderr_file;
  };

  // Starts it in a process group of its own. A program that cannot be run ends
  // with code 127.
  explicit Process(const Options& options);
  // Kills and reaps it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void Signal(int signal);
  // Waits until it ends; nullopt when it has not within `limit`.
  std::optional<Exit> Wait(absl::Duration limit);

  // Peak resident memory so far in bytes (VmHWM); 0 when it has ended.
  int64_t PeakResidentBytes() const;
  // The peak begins anew at what is resident now. False if that cannot be had.
  bool ForgetPeak() const;

 private:
  void Reap(bool block);

  pid_t pid_ = -1;
  std::optional<Exit> exit_;
};

// `command` as user and group nobody; takes root and setpriv to run.
std::vector<std::string> AsNobody(std::vector<std::string> command);

// The whole file; "" when it is not there.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& content);

// Asks `condition` every 20 ms until it holds or `limit` has passed; returns
// whether it did. For events of other processes, which cannot be waited for.
template <typename Condition>
bool Eventually(absl::Duration limit, Condition condition);

// A new empty folder for one test, below TMPDIR or /tmp; removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs a command to its end and gives exit code and output.
struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};
Outcome RunCommand(const std::vector<std::string>& command,
                   const std::map<std::string, std::string>& environment = {},
                   absl::Duration limit = absl::Seconds(60));

// ----------------------------------------------------------------- inline ----

void SleepBetweenLooks();
absl::Time SteadyNow();

template <typename Condition>
bool Eventually(absl::Duration limit, Condition condition) {
  const absl::Time end = SteadyNow() + limit;
  while (!condition()) {
    if (SteadyNow() >= end) return false;
    SleepBetweenLooks();
  }
  return true;
}

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_PROCESS_H_
