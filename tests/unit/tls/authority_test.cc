#include "daemon/tls/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;

constexpr Validity kDay = {absl::FromUnixSeconds(1'800'000'000),
                           absl::Hours(24)};

bool Has(const Certificate& certificate, int kind) {
  return X509_get_ext_by_NID(certificate.x509(), kind, -1) >= 0;
}

TEST(Authority, NamesItsClusterAndIsReadBack) {
  const Authority made = MakeAuthority("plant-4");
  EXPECT_EQ(made.cluster(), "plant-4");
  EXPECT_EQ(*made.certificate().uri(), "spiffe://plant-4");
  EXPECT_THAT(made.certificate().subject(), HasSubstr("O=plant-4"));
  const absl::StatusOr<Authority> read =
      Authority::FromParts(made.certificate(), made.key());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cluster(), "plant-4");
}

TEST(Authority, IsRefusedWithAnotherKeyOrFromAnotherCertificate) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  EXPECT_THAT(std::string(Authority::FromParts(authority.certificate(), key)
                              .status()
                              .message()),
              HasSubstr("the key is not that of the authority"));
  EXPECT_THAT(std::string(Authority::FromParts(IssueTo(authority, key), key)
                              .status()
                              .message()),
              HasSubstr("is no authority that `dflctl cert init` made"));
  const Certificate bare =
      MakeOdd(authority, key, {.names = "URI:spiffe://plant-4"});
  EXPECT_THAT(std::string(Authority::FromParts(bare, key).status().message()),
              HasSubstr("it may not sign certificates"));
}

TEST(Authority, RenewsWhatAnAuthoritySignedThatItReplaces) {
  const Authority former = MakeAuthority();
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const Certificate leaf = IssueTo(former, key);
  EXPECT_TRUE(Signed(former.certificate(), leaf));
  EXPECT_FALSE(Signed(authority.certificate(), leaf));
  EXPECT_EQ(authority.Renew(leaf, kDay).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const absl::StatusOr<Certificate> renewed =
      authority.Renew(leaf, kDay, {former.certificate()});
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_TRUE(Signed(authority.certificate(), *renewed));
  EXPECT_TRUE(key.Matches(*renewed));
}

TEST(Authority, RefusesBadNamesAndLifetimes) {
  EXPECT_EQ(Authority::Make("Plant", kDay).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Authority::Make("plant", {Now(), absl::ZeroDuration()}).status().code(),
      absl::StatusCode::kInvalidArgument);
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  EXPECT_EQ(authority.Issue(key, NodeIdentity("a b"), kDay).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(authority.Issue(key, NodeIdentity("a", "plant-5"), kDay)
                      .status()
                      .message()),
      HasSubstr("is of cluster \"plant-5\", and this is the authority of "
                "\"plant-4\""));
}

TEST(Authority, ALongClusterNameFitsTheSubject) {
  const std::string cluster(255, 'a');
  const Authority authority = MakeAuthority(cluster);
  const PrivateKey key = PrivateKey::Generate();
  const Identity identity = {cluster, Role::kNode, std::string(63, 'b')};
  const Certificate leaf = IssueTo(authority, key, identity);
  EXPECT_EQ(*leaf.identity(), identity);
  EXPECT_TRUE(VerifyChain({leaf}, {authority.certificate()}, Now()).ok());
}

TEST(Authority, ALeafHasTheExtensionsThatBothEndsOfAConnectionNeed) {
  const Authority authority = MakeAuthority();
  const Certificate leaf = IssueTo(authority, PrivateKey::Generate());
  for (const int kind : {NID_basic_constraints, NID_key_usage,
                         NID_ext_key_usage, NID_subject_key_identifier,
                         NID_authority_key_identifier, NID_subject_alt_name}) {
    EXPECT_TRUE(Has(leaf, kind)) << kind;
  }
  EXPECT_EQ(X509_get_extended_key_usage(leaf.x509()),
            uint32_t{XKU_SSL_SERVER | XKU_SSL_CLIENT});
  EXPECT_EQ(X509_get_key_usage(leaf.x509()), uint32_t{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_check_host(leaf.x509(), "box-1", 0, 0, nullptr), 1);
}

TEST(Authority, SerialsAreRandom) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  std::set<std::string> serials;
  size_t longest = 0;
  for (int i = 0; i < 20; ++i) {
    serials.insert(IssueTo(authority, key).serial());
    longest = std::max(longest, serials.rbegin()->size());
  }
  EXPECT_EQ(serials.size(), 20u);
  EXPECT_EQ(longest, 32u);  // hexadecimal digits of 128 bits
}

TEST(Authority, NothingOutlivesIt) {
  const Authority authority = MakeAuthority("plant-4", Now(), absl::Hours(2));
  const PrivateKey key = PrivateKey::Generate();
  EXPECT_EQ(IssueTo(authority, key).not_after(),
            authority.certificate().not_after());
  const absl::StatusOr<Certificate> late = authority.Issue(
      key, NodeIdentity(), {Now() + absl::Hours(3), absl::Hours(1)});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("is valid from"));
}

TEST(Authority, SignsARequestForWhomItDecides) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const absl::StatusOr<std::string> request = MakeRequest(key, "somebody");
  ASSERT_TRUE(request.ok()) << request.status();
  const absl::StatusOr<Certificate> leaf =
      authority.Sign(*request, NodeIdentity(), kDay);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_EQ(*leaf->identity(), NodeIdentity());
  EXPECT_EQ(leaf->subject(), "CN=box-1,O=plant-4");
  EXPECT_TRUE(key.Matches(*leaf));
  EXPECT_FALSE(MakeRequest(key, "some body").ok());
}

// A request that asks for the identity of an admin and for the right to sign.
TEST(Authority, IgnoresWhatARequestAsksFor) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const RequestPtr request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key.key());
  STACK_OF(X509_EXTENSION)* wanted = sk_X509_EXTENSION_new_null();
  sk_X509_EXTENSION_push(
      wanted, X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                                  "URI:spiffe://plant-4/admin/me"));
  sk_X509_EXTENSION_push(
      wanted, X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints,
                                  "critical,CA:TRUE"));
  ASSERT_EQ(X509_REQ_add_extensions(request.get(), wanted), 1);
  sk_X509_EXTENSION_pop_free(wanted, X509_EXTENSION_free);
  ASSERT_NE(X509_REQ_sign(request.get(), key.key(), EVP_sha256()), 0);
  const BioPtr bio = WriteBio();
  ASSERT_EQ(PEM_write_bio_X509_REQ(bio.get(), request.get()), 1);
  const absl::StatusOr<Certificate> leaf =
      authority.Sign(Written(bio.get()), NodeIdentity(), kDay);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_EQ(*leaf->identity(), NodeIdentity());
  EXPECT_FALSE(leaf->is_authority());
}

TEST(Authority, RefusesRequestsThatProveNothing) {
  const Authority authority = MakeAuthority();
  const auto sign = [&](const std::string& request) {
    return authority.Sign(request, NodeIdentity(), kDay).status();
  };
  EXPECT_THAT(std::string(sign("hello").message()),
              HasSubstr("no signing request in PEM form"));
  // Somebody else's public key under one's own signature.
  const PrivateKey mine = PrivateKey::Generate();
  const PrivateKey theirs = PrivateKey::Generate();
  const RequestPtr request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), theirs.key());
  ASSERT_NE(X509_REQ_sign(request.get(), mine.key(), EVP_sha256()), 0);
  const BioPtr bio = WriteBio();
  ASSERT_EQ(PEM_write_bio_X509_REQ(bio.get(), request.get()), 1);
  EXPECT_THAT(std::string(sign(Written(bio.get())).message()),
              HasSubstr("signature is wrong"));
  EXPECT_THAT(std::string(sign(*MakeRequest(RsaKey(1024), "a")).message()),
              HasSubstr("too weak"));
}

TEST(Authority, RenewsWithTheSameKeyAndIdentity) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  const Certificate old = IssueTo(authority, key);
  const Validity later = {Now() + absl::Hours(100), absl::Hours(24)};
  const absl::StatusOr<Certificate> renewed = authority.Renew(old, later);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(*renewed->identity(), *old.identity());
  EXPECT_TRUE(key.Matches(*renewed));
  EXPECT_NE(renewed->serial(), old.serial());
  EXPECT_EQ(renewed->not_after(), later.now + later.lifetime);
}

TEST(Authority, RenewsOnlyWhatItSigned) {
  const Authority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Generate();
  EXPECT_THAT(std::string(authority.Renew(IssueTo(MakeAuthority(), key), kDay)
                              .status()
                              .message()),
              HasSubstr("was signed by"));
  EXPECT_EQ(authority.Renew(MakeOdd(authority, key, {.names = ""}), kDay)
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace dfl::tls
