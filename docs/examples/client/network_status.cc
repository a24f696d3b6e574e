// Prints what each member of a network says of itself, asked through any one of
// its daemons:
//   network_status unix:/run/dfld/control.sock
//   network_status box-2:7601 /etc/me/operator/alice
// Exit code 1 when the daemon does not answer, 6 when a member does not.
#include <iostream>
#include <string>

#include "client/control_client.h"

int main(int argc, char** argv) {
  namespace client = dfl::client;
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: network_status TARGET [FOLDER OF MY CERTIFICATE]\n";
    return 2;
  }
  client::ClientOptions options;
  if (argc == 3) {
    options.identity = [folder = std::string(argv[2])] {
      return client::ReadIdentity(folder);
    };
  }
  auto daemon = client::ControlClient::Connect(argv[1], options);
  if (!daemon.ok()) {
    std::cerr << daemon.status().message() << "\n";
    return 2;
  }
  int silent = 0;
  const absl::Status asked = (*daemon)->AskMembers(
      client::AskOptions(),
      [&](const client::MemberAnswer& answer) {
        std::cout << answer.member.node << ": ";
        if (answer.status.ok()) {
          const client::NodeStatus& node = answer.status->node;
          std::cout << client::PhaseName(node.phase) << ", step " << node.step
                    << ", " << answer.age_seconds << " s ago\n";
        } else {
          ++silent;
          std::cout << answer.status.status().message() << "\n";
        }
        return true;  // go on
      },
      /*stop_requested=*/nullptr);
  if (!asked.ok()) {
    std::cerr << asked.message() << "\n";
    return 1;
  }
  return silent > 0 ? 6 : 0;
}
