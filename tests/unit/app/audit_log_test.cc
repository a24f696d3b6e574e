// The audit log on a real file system.
#include "daemon/app/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/unit/control/socket_folder.h"

namespace dfl::app {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixMillis(1772366400123);

class AuditLogTest : public ::testing::Test {
 protected:
  void Open(const std::string& path) {
    auto log = AuditLog::Open(path, [this](const absl::Status& failed) {
      failures_.emplace_back(failed.message());
    });
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  static std::vector<Json> Lines(const std::string& path) {
    std::vector<Json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      lines.push_back(Json::parse(line));
    }
    return lines;
  }
  static control::AuditRecord Record(const std::string& what,
                                     absl::Status status = absl::OkStatus()) {
    return {{"uid 0 (pid 4711)", control::Role::kAdmin, true},
            what,
            std::move(status)};
  }

  SocketFolder folder_;
  const std::string path_ = folder_.File("audit.log");
  std::vector<std::string> failures_;
  std::unique_ptr<AuditLog> log_;
};

TEST_F(AuditLogTest, HasALineForEachCall) {
  Open(path_);
  log_->Write(Record("train pause"), kNow);
  log_->Write(Record("add peer \xff\n",
                     absl::PermissionDeniedError("is a viewer here")),
              kNow);
  const std::vector<Json> lines = Lines(path_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], Json({{"time", "2026-03-01T12:00:00.123Z"},
                            {"who", "uid 0 (pid 4711)"},
                            {"role", "admin"},
                            {"local", true},
                            {"what", "train pause"},
                            {"result", "ok"}}));
  EXPECT_EQ(lines[1]["result"], "PERMISSION_DENIED: is a viewer here");
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0640u, 0u);
}

TEST_F(AuditLogTest, OnlyAddsToWhatIsThere) {
  Open(path_);
  for (int i = 0; i < 1000; ++i) log_->Write(Record("first"), kNow);
  log_.reset();
  Open(path_);
  log_->Write(Record("second"), kNow);
  EXPECT_EQ(Lines(path_).size(), 1001u);  // nothing limits their number
  // Rotation moves it away.
  std::filesystem::rename(path_, path_ + ".1");
  log_->Write(Record("third"), kNow);
  EXPECT_EQ(Lines(path_ + ".1").size(), 1001u);
  EXPECT_EQ(Lines(path_).size(), 1u);
}

TEST_F(AuditLogTest, AWriteThatFailsIsTold) {
  Open("/dev/full");
  log_->Write(Record("train pause"), kNow);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_THAT(failures_[0], HasSubstr("/dev/full"));
  log_->Write(Record("train pause"), kNow);
  EXPECT_EQ(failures_.size(), 2u);
}

TEST_F(AuditLogTest, AFileThatCannotBeMadeIsAnErrorAtTheStart) {
  const auto log = AuditLog::Open(folder_.File("no/such/folder"),
                                  [](const absl::Status&) {});
  EXPECT_EQ(log.status().code(), absl::StatusCode::kNotFound);
  // Whoever can write to the folder must not lead us elsewhere.
  std::filesystem::create_symlink("/etc/passwd", path_);
  EXPECT_FALSE(AuditLog::Open(path_, [](const absl::Status&) {}).ok());
}

TEST_F(AuditLogTest, RefusedConnectionsAreCountedOnceAMinute) {
  Open(path_);
  log_->WriteRefusals({}, kNow, kNow);
  log_->WriteRefusals({{"no-certificate", 3}}, kNow, kNow);
  log_->WriteRefusals({{"no-certificate", 5}}, kNow, kNow + absl::Seconds(30));
  log_->WriteRefusals({{"no-certificate", 7}, {"expired", 1}}, kNow,
                      kNow + absl::Seconds(61));
  log_->WriteRefusals({{"no-certificate", 7}, {"expired", 1}}, kNow,
                      kNow + absl::Minutes(5));
  const std::vector<Json> lines = Lines(path_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["refused"], Json({{"no-certificate", 3}}));
  EXPECT_EQ(lines[1]["refused"], Json({{"no-certificate", 4}, {"expired", 1}}));
  EXPECT_EQ(lines[1]["who"], "strangers");
}

}  // namespace
}  // namespace dfl::app
