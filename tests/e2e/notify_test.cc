// What dfld tells systemd, which waits for it (Type=notify in
// deploy/dfld.service.in), heard at a socket of the test in place of systemd's.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "client/control_client.h"
#include "daemon/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/frozen_thread.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;

constexpr char kPlan[] =
    "members: [a]\nmodel: {kind: logistic, classes: 3}\n"
    "algorithm: {name: local}\nbatch_size: 8\n";

// One datagram, see sd_notify(3).
struct Notice {
  pid_t sender = 0;
  std::vector<std::string> lines;  // "READY=1", "STATUS=..."

  bool Has(const std::string& start) const {
    return std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
      return absl::StartsWith(line, start);
    });
  }
};

// A datagram socket at `path`. A thread reads it, for a full one would hold up
// the daemon.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    DFL_CHECK(path.size() < sizeof(address_.sun_path));
    std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
    const int on = 1;
    DFL_CHECK(fd_ >= 0 && bind(fd_, Address(), sizeof(address_)) == 0 &&
              setsockopt(fd_, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
    reader_ = std::thread([this] { Read(); });
  }
  ~NotifySocket() {
    Finish();
    close(fd_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // The first notice, of the past too, that `wanted` takes; none within
  // `limit`: nullopt.
  std::optional<Notice> Await(const std::function<bool(const Notice&)>& wanted,
                              absl::Duration limit = absl::Seconds(30)) const {
    std::optional<Notice> found;
    const auto come = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      for (const Notice& notice : notices_) {
        if (!wanted(notice)) continue;
        found = notice;
        return true;
      }
      return false;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&come), limit);
    return found;
  }
  std::optional<Notice> Await(const std::string& line) const {
    return Await([&line](const Notice& notice) { return notice.Has(line); });
  }
  // The same for `times` of them.
  bool AwaitTimes(const std::string& line, int times) const {
    const auto come = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::count_if(notices_.begin(), notices_.end(),
                           [&line](const Notice& notice) {
                             return notice.Has(line);
                           }) >= times;
    };
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&come), absl::Seconds(30));
  }
  // Whether one with this line is there now.
  bool Heard(const std::string& line) const {
    return Await([&line](const Notice& notice) { return notice.Has(line); },
                 absl::ZeroDuration())
        .has_value();
  }

  // Takes in all that was sent before; then no more is read.
  void Finish() {
    if (!reader_.joinable()) return;
    DFL_CHECK(sendto(fd_, kLast, std::strlen(kLast), 0, Address(),
                     sizeof(address_)) > 0);
    reader_.join();
  }

 private:
  static constexpr char kLast[] = "X_TEST_ENDS";

  const sockaddr* Address() const {
    return reinterpret_cast<const sockaddr*>(&address_);
  }

  void Read() {
    while (true) {
      char text[4096];
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
      iovec into = {text, sizeof(text)};
      msghdr message = {};
      message.msg_iov = &into;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      const ssize_t length = recvmsg(fd_, &message, 0);
      DFL_CHECK(length >= 0);
      Notice notice;
      notice.lines = absl::StrSplit(absl::string_view(text, length), '\n');
      if (notice.Has(kLast)) return;
      const cmsghdr* header = CMSG_FIRSTHDR(&message);
      if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
        ucred sender = {};
        std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
        notice.sender = sender.pid;
      }
      absl::MutexLock lock(&mutex_);
      notices_.push_back(std::move(notice));
    }
  }

  const int fd_;
  sockaddr_un address_ = {};
  std::thread reader_;
  mutable absl::Mutex mutex_;
  std::vector<Notice> notices_ ABSL_GUARDED_BY(mutex_);
};

class Notify : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    Configure("");
  }

  // `compute`: what is there beside the number of threads.
  void Configure(const std::string& compute, const std::string& more = "") {
    WriteFile(folder_.File("a.yaml"),
              absl::StrCat("name: a\nstate_dir: ", folder_.File("a.state"),
                           "\nsecurity: insecure\n"
                           "peer: {listen: [\"127.0.0.1:0\"]}\n"
                           "control: {socket: ",
                           folder_.File("a.sock"),
                           "}\ncompute: {threads: 1", compute, "}\n"
                           "data: {format: csv, header: no, label_column: -1, "
                           "classes: 3, train: {paths: [",
                           folder_.File("train.csv"), "]}}\n", more));
  }
  void TrainAlone() const {
    const auto client = Client();
    const auto applied = client->ApplyPlan({kPlan, std::nullopt, false});
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_TRUE(client->Train(client::TrainAction::kStart).ok());
  }

  // Does not wait for it: that is what the socket is for.
  void StartDfld() {
    Process::Options start;
    start.command = {Program("dfld"), "--config", folder_.File("a.yaml")};
    start.environment = {{"NOTIFY_SOCKET", folder_.File("notify")},
                         {"OPENBLAS_NUM_THREADS", "1"}};
    start.stderr_file = folder_.File("log");
    process_ = std::make_unique<Process>(start);
  }
  std::string Log() const { return ReadFile(folder_.File("log")); }

  // Of a daemon that serves already: one attempt must do.
  std::unique_ptr<client::ControlClient> Client() const {
    client::ClientOptions options;
    options.max_attempts = 1;
    auto client = client::ControlClient::Connect(
        "unix:" + folder_.File("a.sock"), options);
    DFL_CHECK(client.ok());
    return *std::move(client);
  }

  TemporaryFolder folder_;
  NotifySocket socket_{folder_.File("notify")};
  std::unique_ptr<Process> process_;
};

TEST_F(Notify, ReadyComesOnceItServesAndStoppingOnceItEnds) {
  StartDfld();
  const auto ready = socket_.Await("READY=1");
  ASSERT_TRUE(ready.has_value()) << Log();
  // NotifyAccess=main hears the main process only.
  EXPECT_EQ(ready->sender, process_->pid());
  EXPECT_THAT(Log(), HasSubstr("listening: peers at 127.0.0.1:"));
  EXPECT_TRUE(std::filesystem::exists(folder_.File("a.sock")));
  const auto status = Client()->Status();
  EXPECT_TRUE(status.ok()) << status.status();
  EXPECT_FALSE(socket_.Heard("STOPPING=1"));

  process_->Signal(SIGTERM);
  const auto stopping = socket_.Await("STOPPING=1");
  ASSERT_TRUE(stopping.has_value()) << Log();
  EXPECT_EQ(stopping->sender, process_->pid());
  const auto ended = process_->Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value()) << Log();
  EXPECT_EQ(ended->code, 0) << Log();
}

// WatchdogSec= of the unit, and the line that `systemctl status` shows.
TEST_F(Notify, WatchdogIsFedAndToldWhatItDoes) {
  StartDfld();
  const auto says = [](const std::string& status) {
    return [status](const Notice& notice) {
      return notice.Has("WATCHDOG=1") && notice.Has("STATUS=" + status);
    };
  };
  ASSERT_TRUE(socket_.Await(says("idle, step 0"))) << Log();
  ASSERT_TRUE(socket_.Await("READY=1")) << Log();
  TrainAlone();
  EXPECT_TRUE(socket_.Await(says("training, step "))) << Log();
}

// The loop goes on, and yet the daemon is no longer alive.
TEST_F(Notify, WatchdogIsNotFedWhileTheTrainingIsFrozen) {
  Configure(", frozen_after: 1s");
  StartDfld();
  ASSERT_TRUE(socket_.Await("READY=1")) << Log();
  TrainAlone();
  ASSERT_TRUE(socket_.Await("STATUS=training, step ")) << Log();
  {
    const auto frozen =
        FrozenThread::Freeze(process_->pid(), "dfld-train");
    if (frozen == nullptr) GTEST_SKIP() << "ptrace is not allowed here";
    const auto told = socket_.Await("STATUS=frozen: ");
    ASSERT_TRUE(told.has_value()) << Log();
    EXPECT_FALSE(told->Has("WATCHDOG=1"));
    // It answers still, and says why it will be ended.
    EXPECT_TRUE(Client()->Status().ok());
    EXPECT_THAT(Log(), HasSubstr("frozen: the training is at one mini-batch"));
  }
  EXPECT_TRUE(Eventually(absl::Seconds(30), [this] {
    return absl::StrContains(Log(), "the training moves again");
  }));
}

TEST_F(Notify, ReloadTakesUpWhatItCanAndNamesTheRest) {
  StartDfld();
  ASSERT_TRUE(socket_.Await("READY=1")) << Log();
  Configure(", frozen_after: 7m",
            "labels: {site: north}\nlog: {level: debug, format: json}\n"
            "peers: [\"127.0.0.1:9\"]\n");
  process_->Signal(SIGHUP);
  const auto reloading = socket_.Await("RELOADING=1");
  ASSERT_TRUE(reloading.has_value()) << Log();
  EXPECT_TRUE(reloading->Has("MONOTONIC_USEC="));
  ASSERT_TRUE(socket_.AwaitTimes("READY=1", 2)) << Log();
  EXPECT_THAT(Log(), HasSubstr("reload: in force: labels, peers, "
                               "compute.frozen_after, log.level; after a "
                               "restart: log.format"));
  const auto client = Client();
  const auto peers = client->Peers();
  ASSERT_TRUE(peers.ok()) << peers.status();
  ASSERT_EQ(peers->size(), 1u);
  EXPECT_EQ(peers->front().address, "127.0.0.1:9");
  const auto settings = client->Settings();
  ASSERT_TRUE(settings.ok()) << settings.status();
  std::map<std::string, std::string> values;
  for (const auto& setting : *settings) values[setting.key] = setting.value;
  EXPECT_EQ(values["log.level"], "debug");
  EXPECT_EQ(values["log.format"], "text") << "it is not in force";

  // Back again: who was added by the settings goes with them.
  Configure("");
  process_->Signal(SIGHUP);
  ASSERT_TRUE(socket_.AwaitTimes("READY=1", 3)) << Log();
  EXPECT_TRUE(client->Peers()->empty());
}

TEST_F(Notify, AReloadOfWrongSettingsChangesNothing) {
  StartDfld();
  ASSERT_TRUE(socket_.Await("READY=1")) << Log();
  Configure(", thread: 2", "log: {level: error}\n");
  process_->Signal(SIGHUP);
  ASSERT_TRUE(socket_.AwaitTimes("READY=1", 2)) << Log();
  EXPECT_THAT(Log(), HasSubstr("reload: the settings are as before"));
  EXPECT_THAT(Log(), HasSubstr("compute.thread"));
  EXPECT_TRUE(Client()->Status().ok());
}

TEST_F(Notify, NeverReadyWhenItCannotListen) {
  WriteFile(folder_.File("a.sock"), "somebody's");
  StartDfld();
  const auto ended = process_->Wait(absl::Seconds(30));
  ASSERT_TRUE(ended.has_value()) << Log();
  EXPECT_EQ(ended->code, 1) << Log();
  socket_.Finish();
  EXPECT_FALSE(socket_.Heard("READY=1"));
}

// A service manager that has gone away is no reason to end.
TEST_F(Notify, ServesWithNobodyWhoListens) {
  DaemonProcess::Options options;
  options.name = "b";
  options.folder = folder_.path();
  options.train_csv = folder_.File("train.csv");
  options.environment = {{"NOTIFY_SOCKET", folder_.File("nobody")}};
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_EQ(daemon.Status().phase, client::Phase::kIdle);
  EXPECT_EQ(daemon.Stop()->code, 0);
}

}  // namespace
}  // namespace dfl::testing_support
