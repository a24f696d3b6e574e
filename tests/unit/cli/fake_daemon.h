// dflctl in this process against fake daemons on real unix sockets.
#ifndef DFL_TESTS_UNIT_CLI_FAKE_DAEMON_H_
#define DFL_TESTS_UNIT_CLI_FAKE_DAEMON_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "cli/console.h"
#include "cli/dflctl.h"
#include "daemon/control/control_server.h"
#include "tests/unit/cli/checked_json.h"
#include "tests/unit/control/fake_backend.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl::cli {

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

class CliTest : public ::testing::Test {
 protected:
  // A daemon called `name` at folder/NAME.sock.
  control::FakeBackend& StartDaemon(const std::string& name) {
    backends_.push_back(std::make_unique<control::FakeBackend>(name));
    control::ControlServerOptions options;
    options.unix_socket = Socket(name);
    auto server = control::ControlServer::Start(options, *backends_.back());
    EXPECT_TRUE(server.ok()) << server.status();
    servers_.push_back(*std::move(server));
    return *backends_.back();
  }

  std::string Socket(const std::string& name) const {
    return folder_.File(name + ".sock");
  }

  std::string WriteFile(const std::string& name, const std::string& text) {
    std::ofstream(folder_.File(name)) << text;
    return folder_.File(name);
  }

  // The folder of the test reads FOLDER in what is printed.
  Result Run(const std::vector<std::string>& arguments,
             const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    Io io{in, out, err};
    io.out_is_terminal = out_is_terminal_;
    io.environment = environment_;
    io.is_root = false;
    Result result;
    result.code = Dflctl(arguments, io);
    CheckJson(arguments, result.code, out.str());
    result.out =
        absl::StrReplaceAll(out.str(), {{folder_.File(""), "FOLDER/"}});
    result.err =
        absl::StrReplaceAll(err.str(), {{folder_.File(""), "FOLDER/"}});
    return result;
  }

  // With daemon `name` as the target.
  Result RunAt(const std::string& name, std::vector<std::string> arguments) {
    arguments.push_back("--target=unix:" + Socket(name));
    return Run(arguments);
  }

  SocketFolder folder_;
  std::map<std::string, std::string> environment_;
  bool out_is_terminal_ = false;
  std::vector<std::unique_ptr<control::FakeBackend>> backends_;
  std::vector<std::unique_ptr<control::ControlServer>> servers_;
};

inline constexpr char kPlan[] =
    "members: [box-1, box-2, box-3, box-4]\n"
    "model: {kind: cnn}\n"
    "algorithm: {name: pame, knobs: {nu: 0.5, p: 0.1, kappa: [5, 10]}}\n"
    "topology: {kind: complete}\n";

}  // namespace dfl::cli

#endif  // DFL_TESTS_UNIT_CLI_FAKE_DAEMON_H_
