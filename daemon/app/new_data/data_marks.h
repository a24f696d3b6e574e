// What the data files look like from outside: by this it is seen that they have
// changed, and nothing is read for it.
#ifndef DFL_APP_NEW_DATA_DATA_MARKS_H_
#define DFL_APP_NEW_DATA_DATA_MARKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/config/node_settings.h"

namespace dfl::app {

struct DataMarks {
  int64_t files = 0;
  int64_t bytes = 0;  // of all of them, as they are on the disk
  // Of each file's path, size, inode and time of its last change, and of what
  // is not there or cannot be looked at.
  uint64_t digest = 0;

  friend bool operator==(const DataMarks&, const DataMarks&) = default;
};

// Of the files at `paths`, links followed, and of those in the folders there
// and in their subfolders. What the reader of pictures passes over is left out.
// Blocks on the disk.
DataMarks MarksOf(const std::vector<std::string>& paths);

// The files and folders that `settings` name.
std::vector<std::string> DataPaths(const config::DataSettings& settings);

}  // namespace dfl::app

#endif  // DFL_APP_NEW_DATA_DATA_MARKS_H_
