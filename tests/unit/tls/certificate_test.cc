#include "daemon/tls/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Certificate, TellsWhatItHolds) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const Certificate leaf = IssueTo(authority, key);
  ASSERT_TRUE(leaf.identity().ok()) << leaf.identity().status();
  EXPECT_EQ(*leaf.identity(), NodeIdentity());
  EXPECT_EQ(leaf.not_before(), Now() - absl::Minutes(5));
  EXPECT_EQ(leaf.not_after(), Now() + absl::Hours(24));
  EXPECT_THAT(leaf.fingerprint(), SizeIs(64));
  EXPECT_EQ(leaf.subject(), "CN=box-1,O=plant-4");
  EXPECT_EQ(leaf.issuer(), authority.certificate().subject());
  EXPECT_EQ(leaf.key().name, "EC P-256");
  EXPECT_EQ(leaf.key().security_bits, 128);
  EXPECT_FALSE(leaf.is_authority());
  EXPECT_TRUE(authority.certificate().is_authority());
}

TEST(Certificate, APemTextKeepsEveryCertificateInOrder) {
  const Authority authority = MakeAuthority();
  const Certificate leaf = IssueTo(authority, PrivateKey::Generate());
  const absl::StatusOr<std::vector<Certificate>> read = ParseCertificates(
      "a comment\n" + leaf.ToPem() + "\nbetween\n" +
          authority.certificate().ToPem() + PrivateKey::Generate().ToPem(),
      "f.pem");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_THAT(*read, SizeIs(2));
  EXPECT_EQ((*read)[0].fingerprint(), leaf.fingerprint());
  EXPECT_EQ((*read)[1].fingerprint(), authority.certificate().fingerprint());
}

TEST(Certificate, ATextWithoutGoodCertificatesSaysWhy) {
  const std::string pem = MakeAuthority().certificate().ToPem();
  std::string damaged = pem;
  damaged.replace(30, 8, "AAAAAAAA");
  std::string many;
  for (int i = 0; i < 65; ++i) many += pem;
  const std::pair<std::string, std::string> cases[] = {
      {"", "f.pem: is empty"},
      {" \n", "f.pem: is empty"},
      {"hello", "f.pem: has no certificate in PEM form"},
      {PrivateKey::Generate().ToPem(), "has no certificate in PEM form"},
      {pem + damaged, "f.pem: certificate 2 is damaged"},
      {pem.substr(0, 200), "f.pem: certificate 1 is damaged"},
      {many, "more than 64"},
  };
  for (const auto& [text, said] : cases) {
    EXPECT_THAT(
        std::string(ParseCertificates(text, "f.pem").status().message()),
        HasSubstr(said));
  }
}

TEST(Certificate, ExactlyOneUriNamesAnIdentity) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const std::pair<std::string, std::string> cases[] = {
      {"", "no URI among its alternative names"},
      {"DNS:box-1", "no URI among its alternative names"},
      {"URI:spiffe://plant-4/node/a,URI:spiffe://plant-4/node/b",
       "2 URIs among its alternative names"},
      {"URI:https://plant-4/node/a", "begins with spiffe://"},
  };
  for (const auto& [names, said] : cases) {
    const Certificate odd = MakeOdd(authority, key, {.names = names});
    ASSERT_FALSE(odd.identity().ok()) << names;
    EXPECT_THAT(std::string(odd.identity().status().message()),
                HasSubstr(said));
  }
  EXPECT_TRUE(MakeOdd(authority, key,
                      {.names = "DNS:x,URI:spiffe://plant-4/node/a,DNS:y"})
                  .identity()
                  .ok());
}

TEST(Certificate, AStrangersNameCannotSteerATerminal) {
  const Authority authority = MakeAuthority();
  const Certificate odd =
      MakeOdd(authority, PrivateKey::Generate(), {.common_name = "a\x1b[2J"});
  EXPECT_EQ(odd.subject(), "CN=a\\1B[2J");
  const Certificate no_uri =
      MakeOdd(authority, PrivateKey::Generate(),
              {.names = "URI:spiffe://plant-4/node/a\x1b[2J"});
  EXPECT_THAT(std::string(no_uri.identity().status().message()),
              Not(HasSubstr("\x1b")));
}

TEST(Bundle, TakesAuthoritiesOnly) {
  const Authority authority = MakeAuthority();
  const std::string leaf = IssueTo(authority, PrivateKey::Generate()).ToPem();
  EXPECT_THAT(*ParseBundle(authority.certificate().ToPem() +
                               MakeAuthority().certificate().ToPem(),
                           "ca.pem"),
              SizeIs(2));
  EXPECT_THAT(
      std::string(ParseBundle(authority.certificate().ToPem() + leaf, "ca.pem")
                      .status()
                      .message()),
      HasSubstr("ca.pem: the certificate of CN=box-1,O=plant-4 is no "
                "authority's"));
  const Certificate weak =
      MakeOdd(authority, RsaKey(1024), {.constraints = "critical,CA:TRUE"});
  EXPECT_THAT(
      std::string(ParseBundle(weak.ToPem(), "ca.pem").status().message()),
      HasSubstr("too weak (RSA 1024)"));
}

TEST(Chain, IsVouchedForByOneOfSeveralAuthorities) {
  const Authority first = MakeAuthority();
  const Authority second = MakeAuthority();
  const Certificate of_first = IssueTo(first, PrivateKey::Generate());
  const Certificate of_second = IssueTo(second, PrivateKey::Generate());
  const std::vector<Certificate> both = {first.certificate(),
                                         second.certificate()};
  EXPECT_TRUE(VerifyChain({of_first}, both, Now()).ok());
  EXPECT_TRUE(VerifyChain({of_second}, both, Now()).ok());
  const ChainVerdict removed =
      VerifyChain({of_first}, {second.certificate()}, Now());
  EXPECT_EQ(removed.fault, ChainFault::kUnknownAuthority);
  EXPECT_THAT(removed.text, AllOf(HasSubstr("CN=box-1,O=plant-4"),
                                  HasSubstr(first.certificate().subject()),
                                  HasSubstr(second.certificate().subject())));
}

TEST(Chain, IsValidBetweenItsDatesOnly) {
  const Authority authority = MakeAuthority();
  const Certificate leaf = IssueTo(authority, PrivateKey::Generate());
  const std::vector<Certificate> bundle = {authority.certificate()};
  const auto at = [&](absl::Time time) {
    return VerifyChain({leaf}, bundle, time);
  };
  EXPECT_TRUE(at(leaf.not_before()).ok());
  EXPECT_TRUE(at(leaf.not_after() - absl::Seconds(1)).ok());
  const ChainVerdict late = at(leaf.not_after() + absl::Seconds(1));
  EXPECT_EQ(late.fault, ChainFault::kExpired);
  EXPECT_THAT(late.text, AllOf(HasSubstr(TimeText(leaf.not_after())),
                               HasSubstr("the clock says 2027-01-16")));
  const ChainVerdict early = at(absl::FromUnixSeconds(0));
  EXPECT_EQ(early.fault, ChainFault::kNotYetValid);
  EXPECT_THAT(early.text, HasSubstr("the clock says 1970-01-01 00:00:00 UTC"));
}

TEST(Chain, AnExpiredAuthorityVouchesForNothing) {
  const Authority authority = MakeAuthority("plant-4", Now(), absl::Hours(1));
  const Certificate leaf =
      MakeOdd(authority, PrivateKey::Generate(), {.days = 30});
  const std::vector<Certificate> bundle = {authority.certificate()};
  EXPECT_TRUE(VerifyChain({leaf}, bundle, Now()).ok());
  const ChainVerdict late = VerifyChain({leaf}, bundle, Now() + absl::Hours(2));
  EXPECT_EQ(late.fault, ChainFault::kExpired);
  EXPECT_THAT(late.text, HasSubstr(authority.certificate().subject()));
}

TEST(Chain, RefusesWeakKeysHashesAndWrongUse) {
  const Authority authority = MakeAuthority();
  const std::vector<Certificate> bundle = {authority.certificate()};
  const PrivateKey key = PrivateKey::Generate();
  const auto fault = [&](const PrivateKey& of, const Odd& odd) {
    return VerifyChain({MakeOdd(authority, of, odd)}, bundle, Now()).fault;
  };
  EXPECT_EQ(fault(key, {}), ChainFault::kNone);
  EXPECT_EQ(fault(RsaKey(2048), {}), ChainFault::kNone);
  EXPECT_EQ(fault(RsaKey(1024), {}), ChainFault::kWeakKey);
  EXPECT_EQ(fault(key, {.digest = EVP_sha1()}), ChainFault::kWeakKey);
  EXPECT_EQ(fault(key, {.usage = "serverAuth"}), ChainFault::kUnfit);
  EXPECT_EQ(fault(key, {.usage = "clientAuth"}), ChainFault::kUnfit);
  EXPECT_EQ(fault(key, {.usage = "codeSigning"}), ChainFault::kUnfit);
  EXPECT_EQ(fault(key, {.constraints = "critical,CA:TRUE"}),
            ChainFault::kUnfit);
  EXPECT_EQ(VerifyChain(bundle, bundle, Now()).fault, ChainFault::kUnfit);
}

TEST(Chain, ALeafCannotSignFurtherCertificates) {
  const Authority authority = MakeAuthority();
  const PrivateKey stolen = PrivateKey::Generate();
  const Certificate leaf = IssueTo(authority, stolen);
  // What a stolen box would do: sign with its own key under its own name.
  Certificate forged = IssueTo(authority, PrivateKey::Generate(),
                               {"plant-4", Role::kAdmin, "me"});
  X509_set_issuer_name(forged.x509(), X509_get_subject_name(leaf.x509()));
  ASSERT_NE(X509_sign(forged.x509(), stolen.key(), EVP_sha256()), 0);
  const absl::StatusOr<std::vector<Certificate>> presented =
      ParseCertificates(forged.ToPem() + leaf.ToPem(), "test");
  ASSERT_TRUE(presented.ok());
  EXPECT_FALSE(VerifyChain(*presented, {authority.certificate()}, Now()).ok());
}

TEST(Chain, AnAuthorityOfTheSameNameIsAnother) {
  const Authority authority = MakeAuthority();
  Authority impostor = MakeAuthority();
  Certificate forged = IssueTo(authority, PrivateKey::Generate());
  ASSERT_NE(X509_sign(forged.x509(), impostor.key().key(), EVP_sha256()), 0);
  const absl::StatusOr<std::vector<Certificate>> presented =
      ParseCertificates(forged.ToPem(), "test");
  ASSERT_TRUE(presented.ok());
  EXPECT_EQ(VerifyChain(*presented, {authority.certificate()}, Now()).fault,
            ChainFault::kUnknownAuthority);
}

}  // namespace
}  // namespace dfl::tls
