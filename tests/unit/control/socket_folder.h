// A folder for sockets and files of one test, removed with its end. Its path is
// short: a socket's may have 107 bytes only.
#ifndef DFL_TESTS_UNIT_CONTROL_SOCKET_FOLDER_H_
#define DFL_TESTS_UNIT_CONTROL_SOCKET_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "daemon/base/check.h"

namespace dfl {

class SocketFolder {
 public:
  SocketFolder() : path_("/tmp/dfl-XXXXXX") {
    DFL_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~SocketFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;

  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace dfl

#endif  // DFL_TESTS_UNIT_CONTROL_SOCKET_FOLDER_H_
