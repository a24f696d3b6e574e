#include "daemon/discovery/address_file.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/unit/discovery/fake_resolver.h"
#include "tests/unit/discovery/told.h"

namespace dfl::discovery {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::WriteFile;
using List = std::vector<std::string>;

TEST(ParseAddressFile, TakesAddressesAndComments) {
  const auto addresses = ParseAddressFile(
      "# the boxes of hall 4\n\n  box-2:7600  # spare\n[2001:db8::1]:7600\r\n"
      "box-2:7600\n192.0.2.1:1");
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_THAT(*addresses,
              ElementsAre("192.0.2.1:1", "[2001:db8::1]:7600", "box-2:7600"));
}

TEST(ParseAddressFile, NamesTheLineThatIsWrong) {
  struct Case {
    std::string text;
    std::string found;
  };
  for (const Case& c :
       {Case{"a:1\nbox\n", "2: found \"box\": it has no port"},
        Case{"0.0.0.0:7600\n", "1: found \"0.0.0.0:7600\": that cannot"},
        Case{"a:0\n", "1: found \"a:0\": that cannot"},
        Case{std::string("a\0b:1", 5), "1: found \"a\\000b:1\""}}) {
    const auto addresses = ParseAddressFile(c.text);
    ASSERT_FALSE(addresses.ok()) << c.text;
    EXPECT_THAT(std::string(addresses.status().message()),
                AllOf(HasSubstr(c.found), HasSubstr("allowed: one host:port")));
  }
}

class FileSourceTest : public testing::Test {
 protected:
  void Start() {
    source_ = MakeFileSource(path_, fake_.resolver(),
                             {absl::Milliseconds(2), absl::Milliseconds(2)});
    source_->Start(told_.tell());
  }
  void TearDown() override {
    if (source_) source_->Stop();
  }
  bool Has(const List& addresses) {
    return told_.Becomes(
        [&](const Findings& found) { return found.addresses == addresses; });
  }

  testing_support::TemporaryFolder folder_;
  const std::string path_ = folder_.File("boxes");
  FakeResolver fake_;
  Told told_;
  std::unique_ptr<Source> source_;
};

TEST_F(FileSourceTest, FollowsTheFile) {
  WriteFile(path_, "192.0.2.1:1\n");
  Start();
  EXPECT_TRUE(Has({"192.0.2.1:1"}));
  WriteFile(path_, "192.0.2.1:1\n192.0.2.2:1\n");
  EXPECT_TRUE(Has({"192.0.2.1:1", "192.0.2.2:1"}));
  WriteFile(path_, "# nobody\n");
  EXPECT_TRUE(Has({}));
}

TEST_F(FileSourceTest, AFileThatIsNotThereYetIsWaitedFor) {
  Start();
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& found) { return !found.trouble.empty(); }));
  EXPECT_THAT(told_.last().trouble, HasSubstr(path_));
  WriteFile(path_, "192.0.2.1:1\n");
  EXPECT_TRUE(Has({"192.0.2.1:1"}));
  EXPECT_EQ(told_.last().trouble, "");
}

TEST_F(FileSourceTest, WhatIsWrongOrMissingKeepsTheLastGoodList) {
  WriteFile(path_, "192.0.2.1:1\n");
  Start();
  EXPECT_TRUE(Has({"192.0.2.1:1"}));
  WriteFile(path_, "192.0.2.2:1\n192.0.2.3");
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& found) { return !found.trouble.empty(); }));
  EXPECT_THAT(told_.last().addresses, ElementsAre("192.0.2.1:1"));
  EXPECT_THAT(
      told_.last().trouble,
      AllOf(HasSubstr(path_ + ":2: found \"192.0.2.3\""),
            HasSubstr("the last good list stays in force (1 address)")));
  std::filesystem::remove(path_);
  EXPECT_TRUE(told_.Becomes([](const Findings& found) {
    return found.trouble.find("found") == std::string::npos;
  }));
  EXPECT_THAT(told_.last().addresses, ElementsAre("192.0.2.1:1"));
}

TEST_F(FileSourceTest, NamesInItAreResolved) {
  fake_.SetHost("box-7", List{"192.0.2.7"});
  WriteFile(path_, "box-7:7600\n");
  Start();
  EXPECT_TRUE(Has({"192.0.2.7:7600"}));
}

TEST_F(FileSourceTest, NamesAreNotAskedForAtEachLook) {
  fake_.SetHost("box-7", List{"192.0.2.7"});
  fake_.SetHost("box-8", List{"192.0.2.8"});
  WriteFile(path_, "box-7:7600\n");
  Start();
  EXPECT_TRUE(Has({"192.0.2.7:7600"}));
  const int looks = told_.times();
  EXPECT_TRUE(told_.Becomes(
      [&](const Findings&) { return told_.times() > looks + 10; }));
  EXPECT_EQ(fake_.lookups(), 1);
  // A list that has changed is asked for as a whole.
  WriteFile(path_, "box-7:7600\nbox-8:7600\n");
  EXPECT_TRUE(Has({"192.0.2.7:7600", "192.0.2.8:7600"}));
  EXPECT_EQ(fake_.lookups(), 3);
}

TEST_F(FileSourceTest, ANameInTroubleIsAskedForAgainAtOnce) {
  WriteFile(path_, "box-7:7600\n");
  Start();
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(5),
                                          [&] { return fake_.lookups() > 3; }));
  fake_.SetHost("box-7", List{"192.0.2.7"});
  EXPECT_TRUE(testing_support::Eventually(absl::Seconds(5), [&] {
    return told_.last().addresses == List{"192.0.2.7:7600"};
  }));
}

}  // namespace
}  // namespace dfl::discovery
