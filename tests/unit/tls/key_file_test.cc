#include "daemon/tls/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "tests/unit/control/socket_folder.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class KeyFile : public ::testing::Test {
 protected:
  absl::Status Load(const PemFile& file, uint32_t reader = kMe) {
    return LoadKey(file, reader, certificate_, "/tls/cert.pem").status();
  }
  PemFile Good() const { return FileOf("/tls/key.pem", key_.ToPem(), 0600); }

  const PrivateKey key_ = PrivateKey::Generate();
  const Certificate certificate_ = IssueTo(MakeAuthority(), key_);
  SocketFolder folder_;
};

TEST_F(KeyFile, IsLoadedWhenItsOwnerAloneMayReadIt) {
  EXPECT_TRUE(Load(Good()).ok());
  PemFile file = Good();
  file.mode = 0400;
  EXPECT_TRUE(Load(file).ok());
  file.owner = 0;
  EXPECT_TRUE(Load(file).ok());
}

// A Secret of Kubernetes: the file is root's, and the pod's group may read it.
TEST_F(KeyFile, MayBeLentByRootToTheProcessesOwnGroup) {
  PemFile file = Good();
  file.owner = 0;
  file.mode = 0440;
  file.own_group = true;
  EXPECT_TRUE(Load(file).ok());
  // Of these any one is enough to refuse it.
  PemFile another_group = file;
  another_group.own_group = false;
  PemFile not_of_root = file;
  not_of_root.owner = 1000;
  PemFile writable = file;
  writable.mode = 0460;
  PemFile for_all = file;
  for_all.mode = 0444;
  for (const PemFile& refused :
       {another_group, not_of_root, writable, for_all}) {
    EXPECT_EQ(Load(refused).code(), absl::StatusCode::kPermissionDenied);
  }
  // Root needs no lending: its own file is its own.
  EXPECT_EQ(Load(file, 0).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(KeyFile, EachMistakeHasItsMessageAndItsCure) {
  struct Case {
    PemFile file;
    absl::StatusCode code;
    std::string said;
    std::string cure;
  };
  const PemFile good = Good();
  PemFile missing = good;
  missing.error = ENOENT;
  PemFile unreadable = good;
  unreadable.error = EACCES;
  PemFile broken = good;
  broken.error = EIO;
  PemFile foreign = good;
  foreign.owner = 1234;
  const auto with_mode = [&](uint32_t mode) {
    PemFile file = good;
    file.mode = mode;
    return file;
  };
  const auto with_content = [&](const std::string& content) {
    PemFile file = good;
    file.content = content;
    return file;
  };
  using enum absl::StatusCode;
  const std::string issue = "`dflctl cert issue box-1`";
  const Case cases[] = {
      {missing, kNotFound, "there is no such file", issue},
      {unreadable, kPermissionDenied, "this user may not read it",
       "`namei -l /tls/key.pem`"},
      {broken, kFailedPrecondition, "Input/output error", ""},
      {with_mode(0640), kPermissionDenied, "its rights are 0640",
       "`chmod 600 /tls/key.pem`"},
      {with_mode(0604), kPermissionDenied, "its rights are 0604",
       "`chmod 600 /tls/key.pem`"},
      {with_mode(0620), kPermissionDenied, "its rights are 0620",
       "`chmod 600 /tls/key.pem`"},
      {foreign, kPermissionDenied,
       "belongs to user id 1234, and this process runs as 1000",
       "`chown 1000 /tls/key.pem`"},
      {with_content(""), kInvalidArgument, "is empty", issue},
      {with_content("hello"), kInvalidArgument, "has no key in PEM form",
       issue},
      {with_content(certificate_.ToPem()), kInvalidArgument,
       "has no key in PEM form", issue},
      {with_content(key_.ToPem().substr(0, 90)), kInvalidArgument,
       "the key is damaged", issue},
      {with_content(Encrypted(key_)), kInvalidArgument, "the key is encrypted",
       "`openssl pkey -in /tls/key.pem -out NEW`"},
      {with_content(PrivateKey::Generate().ToPem()), kFailedPrecondition,
       "is not the key of /tls/cert.pem (CN=box-1,O=plant-4", issue},
  };
  for (const Case& c : cases) {
    const absl::Status status = Load(c.file);
    EXPECT_EQ(status.code(), c.code) << c.said;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("/tls/key.pem"), HasSubstr(c.said), HasSubstr(c.cure)));
  }
}

TEST_F(KeyFile, IsReadWithItsRights) {
  const std::string path = folder_.File("key.pem");
  ASSERT_TRUE(WritePrivate(path, key_.ToPem()).ok());
  const PemFile file = ReadPemFile(path);
  EXPECT_EQ(file.error, 0);
  EXPECT_EQ(file.mode, 0600u);
  EXPECT_EQ(file.owner, geteuid());
  EXPECT_EQ(file.content, key_.ToPem());
  EXPECT_TRUE(Load(file, geteuid()).ok());
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(Load(ReadPemFile(path), geteuid()).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(KeyFile, IsWrittenPrivatelyWhateverIsThere) {
  const std::string path = folder_.File("key.pem");
  for (const std::string& name : {path, path + ".new"}) {
    std::ofstream(name) << "old";
    ASSERT_EQ(chmod(name.c_str(), 0666), 0);
  }
  ASSERT_TRUE(WritePrivate(path, "new").ok());
  EXPECT_EQ(ReadPemFile(path).mode, 0600u);
  EXPECT_EQ(ReadPemFile(path).content, "new");
}

TEST_F(KeyFile, WhatIsNoFileIsRefusedWithoutBlocking) {
  EXPECT_EQ(ReadPemFile(folder_.File("none")).error, ENOENT);
  EXPECT_EQ(CheckRead(ReadPemFile(folder_.File("none")), "do this").message(),
            folder_.File("none") + ": there is no such file; do this");
  EXPECT_EQ(ReadPemFile(folder_.File("")).error, EINVAL);
  ASSERT_EQ(mkfifo(folder_.File("fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadPemFile(folder_.File("fifo")).error, EINVAL);
  std::ofstream(folder_.File("large")) << std::string((1 << 20) + 1, 'x');
  const PemFile large = ReadPemFile(folder_.File("large"));
  EXPECT_EQ(large.error, EFBIG);
  EXPECT_EQ(large.content, "");
  EXPECT_THAT(std::string(CheckRead(large, "").message()),
              HasSubstr("more than 1 MiB"));
}

}  // namespace
}  // namespace dfl::tls
