// The control groups that bound this process.
#ifndef DFL_APP_CGROUP_H_
#define DFL_APP_CGROUP_H_

#include <string>
#include <utility>
#include <vector>

namespace dfl::app {

// Folders of the process's group and of all above it, ending in "/": of cgroup
// v2 where `controller` is "", else of that controller of v1. What bounds one
// of them bounds the process. `root` is "/" except in tests.
std::vector<std::string> GroupFolders(const std::string& root,
                                      const std::string& controller);

// The first two words of a file; empty when it cannot be read.
std::pair<std::string, std::string> FirstWords(const std::string& path);

}  // namespace dfl::app

#endif  // DFL_APP_CGROUP_H_
