#include "daemon/app/new_data/data_marks.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/data/load.h"

namespace dfl::app {
namespace {

namespace fs = std::filesystem;

// FOLDER/CLASS/PICTURE, and one more: what is too deep is an error to tell.
constexpr int kDepth = 3;

class Marking {
 public:
  DataMarks Take() const { return marks_; }

  void Add(const std::string& path, int depth) {
    struct stat found{};
    if (stat(path.c_str(), &found) != 0) return Missing(path, errno);
    if (S_ISDIR(found.st_mode) && depth < kDepth) return AddFolder(path, depth);
    constexpr uint64_t kNanos = 1'000'000'000;
    const uint64_t changed =
        static_cast<uint64_t>(found.st_mtim.tv_sec) * kNanos +
        static_cast<uint64_t>(found.st_mtim.tv_nsec);
    ++marks_.files;
    marks_.bytes += found.st_size;
    Mix(path);
    for (const uint64_t value : {static_cast<uint64_t>(found.st_size), changed,
                                 static_cast<uint64_t>(found.st_ino),
                                 static_cast<uint64_t>(found.st_dev)}) {
      marks_.digest = Mix64(marks_.digest ^ value);
    }
  }

 private:
  void Mix(const std::string& path) {
    marks_.digest = DeriveSeed(marks_.digest, path);
  }
  void Missing(const std::string& path, int why) {
    Mix(path);
    marks_.digest = Mix64(marks_.digest ^ static_cast<uint64_t>(why));
  }

  void AddFolder(const std::string& path, int depth) {
    Mix(path);
    std::error_code error;
    std::vector<std::string> names;
    fs::directory_iterator it(path, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      std::string name = it->path().filename().string();
      if (!data::IsClutter(name)) names.push_back(std::move(name));
    }
    if (error) return Missing(path, error.value());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      Add(absl::StrCat(path, "/", name), depth + 1);
    }
  }

  DataMarks marks_;
};

}  // namespace

DataMarks MarksOf(const std::vector<std::string>& paths) {
  Marking marking;
  for (const std::string& path : paths) marking.Add(path, 0);
  return marking.Take();
}

std::vector<std::string> DataPaths(const config::DataSettings& settings) {
  std::vector<std::string> paths = settings.train_paths;
  paths.insert(paths.end(), settings.test_paths.begin(),
               settings.test_paths.end());
  if (!settings.standardise.file.empty()) {
    paths.push_back(settings.standardise.file);
  }
  return paths;
}

}  // namespace dfl::app
