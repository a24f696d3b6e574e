// Asks a daemon that is not there, and is told so.
#include <iostream>

#include "client/control_client.h"

int main() {
  auto client = dfl::client::ControlClient::Connect("unix:/nonexistent/x.sock");
  if (!client.ok()) {
    std::cerr << client.status().message() << "\n";
    return 1;
  }
  // Nobody's certificate either.
  if (dfl::client::ReadIdentity("/nonexistent").ok()) return 1;
  const auto status = (*client)->Status();
  std::cout << status.status().message() << "\n";
  return absl::IsUnavailable(status.status()) ? 0 : 1;
}
