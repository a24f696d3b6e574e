// One dfld of a test: a real process on loopback, its ports chosen by the
// system, asked through the client library.
#ifndef DFL_TESTS_SUPPORT_DAEMON_PROCESS_H_
#define DFL_TESTS_SUPPORT_DAEMON_PROCESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control_client.h"
#include "tests/support/process.h"

namespace dfl::testing_support {

// Linear data that a small model learns: rows of `features` numbers around one
// of `classes` centres, the label last, as CSV without a header. The same for
// the same seed.
void WriteBlobs(const std::string& path, int64_t rows, int64_t features,
                int64_t classes, uint64_t seed);

class DaemonProcess {
 public:
  struct Options {
    std::string program = "dfld";
    std::map<std::string, std::string> environment;
    std::string name;
    std::string folder;  // configuration, state, socket and logs go there
    std::string train_csv;
    std::string test_csv;  // "" = none
    // In place of the section made from the two: "data:\n  ...".
    std::string data_yaml;
    // In place of all settings that would be made from these options. Its
    // socket is FOLDER/NAME.sock; it has one peer listener, of any port.
    std::string whole_yaml;
    std::vector<std::string> peers;
    // Folder of its ca.pem, cert.pem and key.pem; "": it is insecure.
    std::string tls_folder;
    // Appended to the configuration file.
    std::string extra_yaml;
    std::vector<std::string> extra_flags;
    // Put before the command; must end by executing it.
    std::vector<std::string> wrapper;
    // 0: the system chooses. A restart keeps the port it had.
    int port = 0;
  };

  explicit DaemonProcess(Options options);

  // Starts it and waits until it listens; false: it did not (see log()).
  bool Start();
  // The two halves of that, for many that start at once.
  void Launch();
  bool AwaitReady(absl::Duration limit = absl::Seconds(30));
  // Ends it with SIGTERM; nullopt when it is not gone within 10 s.
  std::optional<Exit> Stop();
  void Kill();  // SIGKILL
  Process& process() { return *process_; }

  // "127.0.0.1:port" of the peer listener.
  const std::string& peer_address() const { return peer_address_; }
  std::string target() const;  // of its control socket
  // Another one after Stop.
  client::ControlClient& client() { return *client_; }

  // Its status now; a default one when it does not answer.
  client::NodeStatus Status();
  // Waits until its status satisfies `condition`.
  bool StatusBecomes(
      absl::Duration limit,
      const std::function<bool(const client::NodeStatus&)>& condition);

  std::string log() const;  // of the last start
  const std::string& name() const { return options_.name; }

 private:
  void Reconnect();
  std::string Base() const;
  std::string ReadyFile() const;  // of the last start

  Options options_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<client::ControlClient> client_;
  std::string peer_address_;
  int starts_ = 0;
};

// Path of a program of this build, e.g. Program("dfld").
std::string Program(const std::string& name);

}  // namespace dfl::testing_support

#endif  // DFL_TESTS_SUPPORT_DAEMON_PROCESS_H_
