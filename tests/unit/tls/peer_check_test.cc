#include "daemon/tls/peer_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PeerCheck : public ::testing::Test {
 protected:
  PeerVerdict Check(const std::string& leaf, const std::string& chain = "",
                    absl::Time now = Now()) {
    const auto banned = [this](const Identity& identity) {
      return identity.name == banned_;
    };
    return CheckPeer({leaf, chain}, {bundle_, "plant-4", roles_, banned}, now);
  }
  PeerVerdict Check(const Certificate& leaf, absl::Time now = Now()) {
    return Check(leaf.ToPem(), "", now);
  }

  const Authority authority_ = MakeAuthority();
  const PrivateKey key_ = PrivateKey::Generate();
  std::vector<Certificate> bundle_ = {authority_.certificate()};
  std::vector<Role> roles_ = {Role::kNode};
  std::string banned_;
};

TEST_F(PeerCheck, AMemberIsAdmittedByItsIdentity) {
  const PeerVerdict verdict = Check(IssueTo(authority_, key_));
  EXPECT_TRUE(verdict.ok()) << verdict.text;
  EXPECT_EQ(verdict.identity, NodeIdentity());
  EXPECT_EQ(verdict.text, "");
}

TEST_F(PeerCheck, TheChainMayRepeatTheLeafOrNot) {
  const std::string leaf = IssueTo(authority_, key_).ToPem();
  const std::string authority = authority_.certificate().ToPem();
  EXPECT_TRUE(Check(leaf, leaf).ok());
  EXPECT_TRUE(Check(leaf, leaf + authority).ok());
  EXPECT_TRUE(Check(leaf, authority).ok());
}

TEST_F(PeerCheck, EachStrangerIsRefusedForItsReason) {
  const Authority other = MakeAuthority();
  const Authority elsewhere = MakeAuthority("plant-5");
  bundle_.push_back(elsewhere.certificate());
  const std::string good = IssueTo(authority_, key_).ToPem();
  struct Case {
    PeerVerdict verdict;
    PeerFault fault;
    std::string said;
  };
  const Case cases[] = {
      {Check(""), PeerFault::kNoCertificate, "no certificate"},
      {Check("hello"), PeerFault::kMalformed, "no certificate in PEM form"},
      {Check(good, "hello"), PeerFault::kMalformed, "the peer's chain"},
      {Check(good, std::string(70'000, 'x')), PeerFault::kMalformed,
       "at most 65536"},
      {Check(IssueTo(other, key_)), PeerFault::kUnknownAuthority,
       other.certificate().subject()},
      {Check(IssueTo(authority_, key_), absl::FromUnixSeconds(0)),
       PeerFault::kNotYetValid, "is valid from"},
      {Check(IssueTo(authority_, key_), Now() + absl::Hours(25)),
       PeerFault::kExpired, "expired at"},
      {Check(MakeOdd(authority_, RsaKey(1024), {})), PeerFault::kWeakKey,
       "RSA 1024"},
      {Check(MakeOdd(authority_, key_, {.usage = "serverAuth"})),
       PeerFault::kUnfit, "cannot be used"},
      {Check(MakeOdd(authority_, key_, {.names = "DNS:box-1"})),
       PeerFault::kNoIdentity, "no URI"},
      {Check(IssueTo(elsewhere, key_, NodeIdentity("box-1", "plant-5"))),
       PeerFault::kWrongCluster, "\"plant-5\", and this is \"plant-4\""},
      {Check(IssueTo(authority_, key_, {"plant-4", Role::kOperator, "alice"})),
       PeerFault::kWrongRole, "has the role operator"},
  };
  std::set<absl::string_view> names;
  for (const Case& c : cases) {
    EXPECT_EQ(c.verdict.fault, c.fault) << c.verdict.text;
    EXPECT_THAT(c.verdict.text, HasSubstr(c.said));
    names.insert(Name(c.fault));
  }
  EXPECT_EQ(names.size(), 10u);
}

TEST_F(PeerCheck, ARemovedAuthorityAndABanEndWhatWasAdmitted) {
  const Certificate leaf = IssueTo(authority_, key_);
  EXPECT_TRUE(Check(leaf).ok());
  banned_ = "box-1";
  const PeerVerdict banned = Check(leaf);
  EXPECT_EQ(banned.fault, PeerFault::kBanned);
  EXPECT_EQ(banned.identity, NodeIdentity());
  EXPECT_THAT(banned.text, HasSubstr("`dflctl peer unban box-1`"));
  banned_ = "box-2";
  EXPECT_TRUE(Check(leaf).ok());
  bundle_ = {MakeAuthority().certificate()};
  EXPECT_EQ(Check(leaf).fault, PeerFault::kUnknownAuthority);
}

TEST_F(PeerCheck, SeveralRolesMayBeAdmitted) {
  roles_ = {Role::kOperator, Role::kViewer};
  EXPECT_TRUE(
      Check(IssueTo(authority_, key_, {"plant-4", Role::kViewer, "bob"})).ok());
  const PeerVerdict node = Check(IssueTo(authority_, key_));
  EXPECT_EQ(node.fault, PeerFault::kWrongRole);
  EXPECT_THAT(node.text, HasSubstr("admitted here: operator, viewer"));
}

TEST_F(PeerCheck, MoreCertificatesThanAChainNeedsAreRefused) {
  std::string chain;
  for (int i = 0; i < 8; ++i) chain += MakeAuthority().certificate().ToPem();
  EXPECT_EQ(Check(IssueTo(authority_, key_).ToPem(), chain).fault,
            PeerFault::kMalformed);
}

TEST(PeerClaim, MustBeWhatTheCertificateSays) {
  const Identity box = NodeIdentity();
  EXPECT_TRUE(CheckClaim(box, "plant-4", NodeId("box-1")).ok());
  const PeerVerdict cluster = CheckClaim(box, "plant-5", NodeId("box-1"));
  EXPECT_EQ(cluster.fault, PeerFault::kClaimsOtherCluster);
  EXPECT_THAT(cluster.text, AllOf(HasSubstr("\"plant-5\""),
                                  HasSubstr("spiffe://plant-4/node/box-1")));
  const PeerVerdict name = CheckClaim(box, "plant-4", NodeId("box-2"));
  EXPECT_EQ(name.fault, PeerFault::kClaimsOtherName);
  EXPECT_THAT(name.text, AllOf(HasSubstr("\"box-2\""),
                               HasSubstr("spiffe://plant-4/node/box-1")));
  const Identity person = {"plant-4", Role::kOperator, "box-1"};
  EXPECT_EQ(CheckClaim(person, "plant-4", NodeId("box-1")).fault,
            PeerFault::kClaimsOtherName);
}

TEST(PeerFault, EveryOneHasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (int i = 0; i < kPeerFaults; ++i) {
    names.insert(Name(static_cast<PeerFault>(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kPeerFaults));
  EXPECT_EQ(static_cast<int>(PeerFault::kClaimsOtherName), kPeerFaults - 1);
}

}  // namespace
}  // namespace dfl::tls
