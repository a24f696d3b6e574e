#include "daemon/web/resources.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace dfl::web {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The fields of /proc/self/stat from the third on: the second is the
// program's name in brackets, which may hold anything.
std::vector<std::string> StatFields() {
  const std::string text = ReadAll("/proc/self/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(absl::string_view(text).substr(name_end + 1), ' ',
                        absl::SkipEmpty());
}

double NumberAt(const std::vector<std::string>& fields, size_t field) {
  double value = 0;
  const size_t index = field - 3;  // proc(5) counts from 1
  if (index < fields.size()) (void)absl::SimpleAtod(fields[index], &value);
  return value;
}

int64_t CountOpenFiles() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int64_t count = -1;  // the folder itself
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

// Since 1970, of the start of the machine.
double BootTime() {
  const std::string text = ReadAll("/proc/stat");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    double seconds = 0;
    if (absl::StartsWith(line, "btime ") &&
        absl::SimpleAtod(line.substr(6), &seconds)) {
      return seconds;
    }
  }
  return 0;
}

}  // namespace

Resources ReadResources(const std::string& state_dir) {
  Resources found;
  const std::vector<std::string> stat = StatFields();
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  found.cpu_seconds = (NumberAt(stat, 14) + NumberAt(stat, 15)) / ticks;
  found.threads = static_cast<int64_t>(NumberAt(stat, 20));
  // It does not change, and /proc/stat is long on large machines.
  static const double boot = BootTime();
  found.start_time = boot + NumberAt(stat, 22) / ticks;
  found.virtual_bytes = static_cast<int64_t>(NumberAt(stat, 23));
  found.resident_bytes =
      static_cast<int64_t>(NumberAt(stat, 24)) * sysconf(_SC_PAGESIZE);
  found.open_files = CountOpenFiles();
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    found.max_open_files = static_cast<int64_t>(files.rlim_cur);
  }
  struct statvfs disk{};
  if (statvfs(state_dir.c_str(), &disk) == 0) {
    found.state_free_bytes = static_cast<int64_t>(disk.f_bavail) *
                             static_cast<int64_t>(disk.f_frsize);
  }
  return found;
}

}  // namespace dfl::web
