// A control server on a unix socket over a fake backend, and a client of it.
#ifndef DFL_TESTS_UNIT_CONTROL_CONTROL_SERVER_FIXTURE_H_
#define DFL_TESTS_UNIT_CONTROL_CONTROL_SERVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/control_client.h"
#include "daemon/control/control_server.h"
#include "tests/unit/control/fake_backend.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl::control {

// Waits for `condition`, at most ten seconds.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

class ControlServerTest : public ::testing::Test {
 protected:
  ControlServerTest() {
    options_.unix_socket = folder_.File("control.sock");
    options_.audit = [this](const AuditRecord& record) {
      absl::MutexLock lock(&mutex_);
      audit_.push_back(record);
    };
  }

  void Start() {
    auto server = ControlServer::Start(options_, backend_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client::ClientOptions options;
    options.timeout = absl::Seconds(10);
    client_ = *client::ControlClient::Connect(server_->addresses()[0], options);
  }

  std::vector<AuditRecord> audit() {
    absl::MutexLock lock(&mutex_);
    return audit_;
  }

  SocketFolder folder_;
  FakeBackend backend_;
  ControlServerOptions options_;
  absl::Mutex mutex_;
  std::vector<AuditRecord> audit_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<client::ControlClient> client_;
};

}  // namespace dfl::control

#endif  // DFL_TESTS_UNIT_CONTROL_CONTROL_SERVER_FIXTURE_H_
