#include "daemon/tls/signature.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

PrivateKey Ed25519Key() {
  const EvpKeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const BioPtr bio = WriteBio();
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0,
                                nullptr, nullptr);
  return *PrivateKey::FromPem(Written(bio.get()), "test");
}

TEST(Signature, IsThatOfTheKeyOverTheBytesAlone) {
  const Authority authority = MakeAuthority();
  for (const PrivateKey& key : {PrivateKey::Generate(), Ed25519Key()}) {
    const Certificate certificate = IssueTo(authority, key);
    SCOPED_TRACE(certificate.key().name);
    const std::string bytes = std::string("some\0bytes", 10);
    const auto signature = Sign(key, bytes);
    ASSERT_TRUE(signature.ok()) << signature.status();
    EXPECT_TRUE(Verify(certificate, bytes, *signature));
    EXPECT_FALSE(Verify(certificate, bytes + "x", *signature));
    EXPECT_FALSE(Verify(certificate, "", *signature));
    EXPECT_FALSE(Verify(certificate, bytes, ""));
    EXPECT_FALSE(Verify(certificate, bytes, *signature + "x"));
    EXPECT_FALSE(
        Verify(IssueTo(authority, PrivateKey::Generate()), bytes, *signature));
    for (size_t bit = 0; bit < signature->size() * 8; ++bit) {
      std::string flipped = *signature;
      flipped[bit / 8] ^= static_cast<char>(1 << (bit % 8));
      EXPECT_FALSE(Verify(certificate, bytes, flipped)) << bit;
    }
    const auto nothing = Sign(key, "");
    ASSERT_TRUE(nothing.ok());
    EXPECT_TRUE(Verify(certificate, "", *nothing));
  }
}

TEST(Signature, OtherKeysSignNothing) {
  const PrivateKey key = RsaKey(2048);
  const auto signature = Sign(key, "bytes");
  EXPECT_EQ(signature.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(
      Verify(IssueTo(MakeAuthority(), key), "bytes", std::string(256, 'x')));
}

TEST(CertificateDer, GoesThereAndBack) {
  const Certificate certificate =
      IssueTo(MakeAuthority(), PrivateKey::Generate());
  const std::string der = ToDer(certificate);
  const auto back = CertificateFromDer(der, "here");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->fingerprint(), certificate.fingerprint());
  EXPECT_EQ(CertificateFromDer(der + "x", "here").status().message(),
            "here: is a certificate with something behind it");
  EXPECT_FALSE(CertificateFromDer("", "here").ok());
  EXPECT_FALSE(CertificateFromDer("nonsense", "here").ok());
  for (size_t length = 0; length < der.size(); ++length) {
    EXPECT_FALSE(CertificateFromDer(der.substr(0, length), "here").ok());
  }
}

TEST(CertificateDer, TellsWhoSignedIt) {
  const Authority authority = MakeAuthority();
  const Authority other = MakeAuthority();
  const Certificate leaf = IssueTo(authority, PrivateKey::Generate());
  EXPECT_TRUE(IsSignedBy(leaf, authority.certificate()));
  EXPECT_TRUE(IsSignedBy(authority.certificate(), authority.certificate()));
  EXPECT_FALSE(IsSignedBy(leaf, other.certificate()));
  EXPECT_FALSE(IsSignedBy(leaf, leaf));
  EXPECT_FALSE(IsSignedBy(authority.certificate(), leaf));
}

}  // namespace
}  // namespace dfl::tls
