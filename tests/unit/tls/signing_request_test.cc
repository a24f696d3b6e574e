#include "daemon/tls/signing_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ui.h>

#include <string>

#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;

TEST(SigningRequest, SaysItsNameAndItsKey) {
  const PrivateKey key = PrivateKey::Generate();
  const absl::StatusOr<SigningRequest> first =
      ParseSigningRequest(*MakeRequest(key, "box-1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->name, "box-1");
  EXPECT_EQ(first->key_sha256.size(), 64u);
  // The key is the same whatever the name, and however often it is asked.
  EXPECT_EQ(ParseSigningRequest(*MakeRequest(key, "box-2"))->key_sha256,
            first->key_sha256);
  EXPECT_NE(ParseSigningRequest(*MakeRequest(PrivateKey::Generate(), "box-1"))
                ->key_sha256,
            first->key_sha256);
}

// A stranger's request must not make an issuer in a terminal ask for one.
TEST(SigningRequest, NobodyIsAskedForAPassPhrase) {
  static bool asked = false;
  UI_METHOD* const method = UI_create_method("seen");
  UI_method_set_opener(method, [](UI*) {
    asked = true;
    return 0;
  });
  UI_set_default_method(method);
  for (const std::string kind : {"CERTIFICATE REQUEST", "CERTIFICATE"}) {
    const std::string text =
        "-----BEGIN " + kind +
        "-----\n"
        "Proc-Type: 4,ENCRYPTED\n"
        "DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\n"
        "MIHKMHICAQAwEDEOMAwGA1UEAwwFYm94LTEwWTATBgcqhkjOPQIBBggqhkjOPQMB\n"
        "-----END " +
        kind + "-----\n";
    EXPECT_FALSE(ParseSigningRequest(text).ok());
    EXPECT_FALSE(ParseCertificates(text, "here").ok());
  }
  EXPECT_FALSE(asked);
  UI_set_default_method(UI_OpenSSL());
  UI_destroy_method(method);
}

TEST(SigningRequest, DamageAndAForeignKeyAreRefused) {
  const PrivateKey key = PrivateKey::Generate();
  for (const std::string& text :
       {std::string(), std::string("garbage"),
        IssueTo(MakeAuthority(), key).ToPem(), key.ToPem()}) {
    const absl::Status status = ParseSigningRequest(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("no signing request in PEM form"));
  }
  // The public key of somebody else, signed with one's own.
  const RequestPtr request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key.key());
  X509_REQ_sign(request.get(), PrivateKey::Generate().key(), EVP_sha256());
  const BioPtr bio = WriteBio();
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  EXPECT_THAT(
      std::string(ParseSigningRequest(Written(bio.get())).status().message()),
      HasSubstr("signature is wrong"));
}

}  // namespace
}  // namespace dfl::tls
