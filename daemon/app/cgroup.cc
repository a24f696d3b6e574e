#include "daemon/app/cgroup.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace dfl::app {
namespace {

// The process's group below the mount: "/a/b".
std::string GroupOf(const std::string& root, const std::string& controller) {
  std::ifstream in(absl::StrCat(root, "proc/self/cgroup"));
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::find(controllers.begin(), controllers.end(), controller) !=
        controllers.end()) {
      return parts[2];
    }
  }
  return "/";
}

}  // namespace

std::vector<std::string> GroupFolders(const std::string& root,
                                      const std::string& controller) {
  std::string folder = absl::StrCat(root, "sys/fs/cgroup/");
  if (!controller.empty()) absl::StrAppend(&folder, controller, "/");
  std::vector<std::string> folders = {folder};
  for (const absl::string_view name :
       absl::StrSplit(GroupOf(root, controller), '/', absl::SkipEmpty())) {
    absl::StrAppend(&folder, name, "/");
    folders.push_back(folder);
  }
  return folders;
}

std::pair<std::string, std::string> FirstWords(const std::string& path) {
  std::ifstream in(path);
  std::string first;
  std::string second;
  in >> first >> second;
  return {first, second};
}

}  // namespace dfl::app
