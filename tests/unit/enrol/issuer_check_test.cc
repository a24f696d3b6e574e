#include "daemon/enrol/issuer_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::enrol {
namespace {

using ::testing::HasSubstr;
using tls::Authority;
using tls::Identity;
using tls::MakeAuthority;
using tls::Now;
using tls::PrivateKey;
using tls::Role;

constexpr char kIssuer[] = "0123456789abcdef";

class IssuerCheckTest : public ::testing::Test {
 protected:
  IssuerCheckTest() {
    token_.issuer = kIssuer;
    token_.cluster = "plant-4";
    token_.node = "box-1";
    token_.expires = Now();
    token_.authority_sha256 = authority_.certificate().fingerprint();
    token_.secret = std::string(kSecretBytes, 's');
  }
  static std::string Leaf(const Authority& authority,
                          const Identity& identity = {"plant-4", Role::kIssuer,
                                                      kIssuer}) {
    return tls::IssueTo(authority, PrivateKey::Generate(), identity).ToPem();
  }
  absl::Status Check(const std::string& leaf, const std::string& chain,
                     absl::Time now = Now()) {
    return CheckIssuer({leaf, chain}, token_, now);
  }
  // That it is refused, and what is said of it.
  std::string Refusal(const std::string& leaf, const std::string& chain) {
    const absl::Status status = Check(leaf, chain);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("The token's secret was not sent"));
    return std::string(status.message());
  }

  const Authority authority_ = MakeAuthority();
  const Authority other_ = MakeAuthority();
  const std::string pinned_ = authority_.certificate().ToPem();
  JoinToken token_;
};

TEST_F(IssuerCheckTest, TheTokensIssuerPasses) {
  const std::string leaf = Leaf(authority_);
  EXPECT_EQ(Check(leaf, leaf + pinned_), absl::OkStatus());
  EXPECT_EQ(Check(leaf, pinned_), absl::OkStatus());
  EXPECT_EQ(Check(leaf, other_.certificate().ToPem() + pinned_),
            absl::OkStatus());
}

TEST_F(IssuerCheckTest, AnotherAuthorityIsRefused) {
  const std::string leaf = Leaf(other_);
  EXPECT_THAT(Refusal(leaf, leaf + other_.certificate().ToPem()),
              HasSubstr(authority_.certificate().fingerprint()));
  // The pinned certificate is no secret: showing it proves nothing.
  EXPECT_THAT(Refusal(leaf, leaf + pinned_), HasSubstr("does not vouch"));
  Refusal(pinned_, pinned_);
}

TEST_F(IssuerCheckTest, TheAuthorityMustBeShown) {
  const std::string leaf = Leaf(authority_);
  EXPECT_THAT(Refusal(leaf, leaf), HasSubstr("shows no authority"));
  EXPECT_THAT(Refusal(leaf, ""), HasSubstr("shows no authority"));
}

TEST_F(IssuerCheckTest, AnotherCertificateOfTheNetworkIsRefused) {
  for (const Identity& identity :
       {Identity{"plant-4", Role::kNode, "box-9"},
        Identity{"plant-4", Role::kNode, kIssuer},
        Identity{"plant-4", Role::kAdmin, "root"},
        Identity{"plant-4", Role::kIssuer, "fedcba9876543210"}}) {
    EXPECT_THAT(Refusal(Leaf(authority_, identity), pinned_),
                HasSubstr(absl::StrCat("it is ", tls::ToUri(identity))));
  }
}

TEST_F(IssuerCheckTest, DatesCount) {
  const std::string leaf = Leaf(authority_);
  const absl::Status early =
      Check(leaf, pinned_, Now() - absl::Hours(24 * 365));
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.message()),
              HasSubstr("Set this machine's clock"));
  EXPECT_THAT(
      std::string(Check(leaf, pinned_, Now() + absl::Hours(25)).message()),
      HasSubstr("expired"));
}

TEST_F(IssuerCheckTest, GarbageIsRefused) {
  Refusal("", "");
  Refusal("garbage", pinned_);
  Refusal(Leaf(authority_), "garbage");
  EXPECT_THAT(Refusal(Leaf(authority_), std::string(100'000, 'x')),
              HasSubstr("more certificates"));
}

}  // namespace
}  // namespace dfl::enrol
