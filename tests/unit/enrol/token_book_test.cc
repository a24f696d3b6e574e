#include "daemon/enrol/token_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dfl/storage/v1/token_book.pb.h"
#include "tests/support/process.h"

namespace dfl::enrol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

TokenUse UseOf(const std::string& node, char key = 'a') {
  return {node, std::string(64, key)};
}

class TokenBookTest : public ::testing::Test {
 protected:
  TokenBook Open() {
    absl::StatusOr<TokenBook> book = TokenBook::Open(folder_.path());
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }
  JoinToken Create(absl::Duration ttl = absl::Hours(1)) {
    const absl::StatusOr<JoinToken> token =
        Open().Create("plant-4", "box-1", std::string(64, 'c'), ttl, kNow);
    EXPECT_TRUE(token.ok()) << token.status();
    return *token;
  }
  absl::Status Redeem(const JoinToken& token,
                      const TokenUse& use = UseOf("box-1"),
                      absl::Time now = kNow) {
    return Open().Redeem(token.secret, use, now, [&](const std::string& node) {
      made_.push_back(node);
      return absl::OkStatus();
    });
  }
  static std::string Text(const absl::Status& status) {
    return std::string(status.message());
  }

  testing_support::TemporaryFolder folder_;
  std::vector<std::string> made_;
};

TEST_F(TokenBookTest, AnIssuerKeepsItsIdAndTwoAreDifferent) {
  const std::string issuer = Open().issuer();
  EXPECT_EQ(issuer.size(), 16u);
  EXPECT_EQ(Open().issuer(), issuer);
  const testing_support::TemporaryFolder other;
  EXPECT_NE(TokenBook::Open(other.path())->issuer(), issuer);
  EXPECT_EQ(Create().issuer, issuer);
}

TEST_F(TokenBookTest, ATokenIsRedeemedOnce) {
  const JoinToken token = Create();
  EXPECT_EQ(token.node, "box-1");
  EXPECT_EQ(token.expires, kNow + absl::Hours(1));
  EXPECT_TRUE(Redeem(token).ok());
  const absl::Status again = Redeem(token, UseOf("box-1", 'b'));
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(again), HasSubstr("was spent at 2027-01-15 08:00:00 UTC"));
  EXPECT_THAT(Text(again), HasSubstr("`dflctl peer ban`"));
  EXPECT_EQ(made_, std::vector<std::string>{"box-1"});
}

TEST_F(TokenBookTest, TheSameKeyMayAskAgainWhileTheTokenLives) {
  const JoinToken token = Create();
  EXPECT_TRUE(Redeem(token).ok());
  EXPECT_TRUE(Redeem(token, UseOf("box-1"), kNow + absl::Minutes(59)).ok());
  const absl::Status late =
      Redeem(token, UseOf("box-1"), kNow + absl::Hours(1));
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(late), HasSubstr("expired at 2027-01-15 09:00:00 UTC, and "
                                    "the issuer's clock says 2027-01-15 "
                                    "09:00:00 UTC"));
}

TEST_F(TokenBookTest, IsNotSpentWhenNothingWasMade) {
  const JoinToken token = Create();
  const absl::Status failed = absl::InternalError("no ink");
  EXPECT_EQ(Open().Redeem(token.secret, UseOf("box-1"), kNow,
                          [&](const std::string&) { return failed; }),
            failed);
  EXPECT_TRUE(Redeem(token, UseOf("box-1", 'b')).ok());
}

TEST_F(TokenBookTest, NothingIsGivenUntilTheSpentTokenIsOnDisk) {
  const JoinToken token = Create();
  EXPECT_TRUE(Redeem(token).ok());
  EXPECT_EQ(Open().List(kNow)->front().state, TokenState::kSpent);
  const JoinToken second = Create();
  // Root may write everywhere, so a folder is where the new file would be.
  ASSERT_EQ(mkdir(folder_.File("tokens.new").c_str(), 0700), 0);
  EXPECT_FALSE(Redeem(second).ok());
}

TEST_F(TokenBookTest, RefusesAnotherNodeAnExpiredARevokedAndAnUnknownOne) {
  const JoinToken token = Create();
  const absl::Status other = Redeem(token, UseOf("box-2"));
  EXPECT_EQ(other.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(other),
              HasSubstr("is for node box-1, and \"box-2\" asks with it"));
  EXPECT_EQ(Redeem(token, UseOf("box-1"), kNow + absl::Hours(2)).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Open().Revoke(TokenId(token.secret), kNow).ok());
  EXPECT_THAT(Text(Redeem(token)), HasSubstr("was revoked at"));
  JoinToken unknown = token;
  unknown.secret[0] ^= 1;
  const absl::Status nobodys = Redeem(unknown);
  EXPECT_EQ(nobodys.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(nobodys), HasSubstr("knows no such join token"));
  EXPECT_TRUE(made_.empty());
}

TEST_F(TokenBookTest, ListsEachStateAndForgetsWhatEndedLongAgo) {
  const JoinToken spent = Create();
  ASSERT_TRUE(Redeem(spent).ok());
  const JoinToken revoked = Create();
  ASSERT_TRUE(Open().Revoke(TokenId(revoked.secret), kNow).ok());
  Create(absl::Minutes(1));
  Create();
  const auto list = Open().List(kNow + absl::Minutes(2));
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 4u);
  EXPECT_EQ((*list)[0].state, TokenState::kSpent);
  EXPECT_EQ((*list)[0].id, TokenId(spent.secret));
  EXPECT_EQ((*list)[0].ended, kNow);
  EXPECT_EQ((*list)[1].state, TokenState::kRevoked);
  EXPECT_EQ((*list)[1].ended, kNow);
  EXPECT_EQ((*list)[2].state, TokenState::kExpired);
  EXPECT_EQ((*list)[3].state, TokenState::kOpen);
  EXPECT_EQ((*list)[3].ended, std::nullopt);
  EXPECT_TRUE(Open().List(kNow + absl::Hours(24 * 31))->empty());
}

TEST_F(TokenBookTest, RevokesWhatCanStillBeRedeemed) {
  const JoinToken token = Create();
  EXPECT_TRUE(Open().Revoke(TokenId(token.secret), kNow).ok());
  EXPECT_TRUE(Open().Revoke(TokenId(token.secret), kNow).ok());
  EXPECT_EQ(Open().Revoke("0123", kNow).code(), absl::StatusCode::kNotFound);
  const JoinToken spent = Create();
  ASSERT_TRUE(Redeem(spent).ok());
  EXPECT_THAT(Text(Open().Revoke(TokenId(spent.secret), kNow)),
              HasSubstr("`dflctl peer ban box-1`"));
  EXPECT_THAT(Text(Open().Revoke(TokenId(Create(absl::Seconds(1)).secret),
                                 kNow + absl::Seconds(2))),
              HasSubstr("has expired already"));
}

TEST_F(TokenBookTest, RefusesBadNamesAndTimesToLive) {
  const TokenBook book = Open();
  const auto create = [&](const std::string& node, absl::Duration ttl) {
    return book.Create("plant-4", node, std::string(64, 'c'), ttl, kNow)
        .status();
  };
  for (const absl::Duration ttl :
       {absl::ZeroDuration(), -absl::Hours(1), absl::Hours(24 * 30 + 1),
        absl::InfiniteDuration()}) {
    EXPECT_THAT(Text(create("box-1", ttl)), HasSubstr("allowed: 1s to 720h"));
  }
  EXPECT_FALSE(create("a b", absl::Hours(1)).ok());
}

TEST_F(TokenBookTest, TheFileHoldsNoSecretAndOnlyItsOwnerWritesIt) {
  const JoinToken token = Create();
  const std::string path = folder_.File("tokens");
  EXPECT_THAT(testing_support::ReadFile(path), Not(HasSubstr(token.secret)));
  struct stat about = {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);
  ASSERT_EQ(chmod(path.c_str(), 0660), 0);
  const absl::Status open = TokenBook::Open(folder_.path()).status();
  EXPECT_EQ(open.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(open), HasSubstr("chmod 600"));
}

TEST_F(TokenBookTest, AnEntryWithoutWhatItMustHaveIsDamage) {
  using dfl::storage::v1::TokenBookFile;
  const JoinToken token = Create();
  const TokenBook book = Open();
  TokenBookFile whole;
  ASSERT_TRUE(
      whole.ParseFromString(testing_support::ReadFile(folder_.File("tokens"))));
  const auto why = [&](const TokenBookFile& file) {
    testing_support::WriteFile(folder_.File("tokens"),
                               file.SerializeAsString());
    const absl::Status list = book.List(kNow).status();
    EXPECT_EQ(TokenBook::Open(folder_.path()).status(), list);
    EXPECT_EQ(book.Redeem(token.secret, UseOf("box-1"), kNow,
                          [](const std::string&) { return absl::OkStatus(); }),
              list);
    EXPECT_EQ(list.code(), absl::StatusCode::kFailedPrecondition);
    return Text(list);
  };
  TokenBookFile file = whole;
  file.add_tokens()->set_node("box-2");
  EXPECT_THAT(why(file), HasSubstr("damaged (token 2 has no hash"));
  file.mutable_tokens(1)->set_secret_sha256("short");
  EXPECT_THAT(why(file), HasSubstr("damaged (token 2 has no hash"));
  file.mutable_tokens(1)->set_secret_sha256(std::string(32, 'x'));
  file.mutable_tokens(1)->clear_node();
  EXPECT_THAT(why(file), HasSubstr("damaged (token 2 has no node)"));
  file = whole;
  file.set_issuer("0123456789abcd\n\n");
  EXPECT_THAT(why(file), HasSubstr("damaged (it names no issuer)"));
  file.clear_issuer();
  EXPECT_THAT(why(file), HasSubstr("damaged (it names no issuer)"));
}

TEST_F(TokenBookTest, ADamagedOrLaterFileRedeemsNothing) {
  const JoinToken token = Create();
  const TokenBook book = Open();
  for (const std::string& content : {std::string("garbage"), std::string()}) {
    testing_support::WriteFile(folder_.File("tokens"), content);
    EXPECT_THAT(Text(book.List(kNow).status()), HasSubstr("is damaged"));
    EXPECT_EQ(book.Redeem(token.secret, UseOf("box-1"), kNow,
                          [](const std::string&) { return absl::OkStatus(); })
                  .code(),
              absl::StatusCode::kFailedPrecondition);
  }
  // format_version 9 and an issuer.
  testing_support::WriteFile(
      folder_.File("tokens"),
      absl::StrCat("\x08\x09\x12\x10", "0123456789abcdef"));
  EXPECT_THAT(Text(TokenBook::Open(folder_.path()).status()),
              HasSubstr("is of version 9"));
}

TEST_F(TokenBookTest, OneOfManyThatAskAtOnceGetsIt) {
  const JoinToken token = Create();
  std::vector<std::thread> threads;
  std::atomic<int> given = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const absl::StatusOr<TokenBook> book = TokenBook::Open(folder_.path());
      if (!book.ok()) return;
      const absl::Status redeemed = book->Redeem(
          token.secret, UseOf("box-1", static_cast<char>('a' + i)), kNow,
          [](const std::string&) { return absl::OkStatus(); });
      if (redeemed.ok()) ++given;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(given, 1);
}

}  // namespace
}  // namespace dfl::enrol
