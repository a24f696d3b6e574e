// Certificates of the `openssl` command are read here, and ours are read by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/unit/control/socket_folder.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {
namespace {

using ::testing::HasSubstr;

class OpensslCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v openssl > /dev/null") != 0) {
      GTEST_SKIP() << "there is no `openssl` command (Debian: openssl)";
    }
  }
  // In the test's folder; what it printed is in the file "out".
  bool Shell(const std::string& commands) {
    return std::system(absl::StrCat("cd ", folder_.File(""), " && (", commands,
                                    ") > out 2>&1")
                           .c_str()) == 0;
  }
  std::string Content(const std::string& name) {
    return ReadPemFile(folder_.File(name)).content;
  }
  // An authority of RSA 2048 and a leaf of the key that `algorithm` makes.
  bool MakeByCommand(const std::string& algorithm) {
    std::ofstream(folder_.File("leaf.cnf"))
        << "subjectAltName=URI:spiffe://plant-4/node/box-1\n"
           "extendedKeyUsage=serverAuth,clientAuth\n"
           "basicConstraints=critical,CA:FALSE\n";
    return Shell(absl::StrCat(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key "
        "-out ca.pem -subj /CN=hand-made -days 2 && "
        "openssl genpkey ",
        algorithm,
        " -out key.pem && "
        "openssl req -new -key key.pem -subj /CN=box-1 -out box.csr && "
        "openssl x509 -req -in box.csr -CA ca.pem -CAkey ca.key "
        "-CAcreateserial -days 1 -extfile leaf.cnf -out cert.pem"));
  }

  SocketFolder folder_;
};

TEST_F(OpensslCommand, ItsCertificatesAreCredentials) {
  const std::pair<std::string, std::string> cases[] = {
      {"-algorithm EC -pkeyopt ec_paramgen_curve:P-384", "EC P-384"},
      {"-algorithm ed25519", "Ed25519"},
      {"-algorithm RSA -pkeyopt rsa_keygen_bits:2048", "RSA 2048"},
  };
  for (const auto& [algorithm, name] : cases) {
    ASSERT_TRUE(MakeByCommand(algorithm)) << Content("out");
    const absl::StatusOr<Credentials> found =
        CheckCredentials({FileOf("ca.pem", Content("ca.pem")),
                          FileOf("cert.pem", Content("cert.pem")),
                          FileOf("key.pem", Content("key.pem"), 0600)},
                         NodeIdentity(), absl::Now() + absl::Minutes(1), kMe);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->chain[0].key().name, name);
  }
}

TEST_F(OpensslCommand, ItsOldKeyFormatIsRead) {
  ASSERT_TRUE(
      Shell("openssl ecparam -name prime256v1 -genkey -noout -out key.pem"))
      << Content("out");
  EXPECT_THAT(Content("key.pem"), HasSubstr("BEGIN EC PRIVATE KEY"));
  EXPECT_TRUE(PrivateKey::FromPem(Content("key.pem"), "key.pem").ok());
  ASSERT_TRUE(
      Shell("openssl ec -in key.pem -aes256 -passout pass:secret "
            "-out locked.pem"))
      << Content("out");
  EXPECT_THAT(
      std::string(PrivateKey::FromPem(Content("locked.pem"), "locked.pem")
                      .status()
                      .message()),
      HasSubstr("is encrypted"));
}

TEST_F(OpensslCommand, VerifiesWhatAnAuthorityMade) {
  const absl::Time now = absl::Now();
  const Authority authority = MakeAuthority("plant-4", now);
  const PrivateKey key = PrivateKey::Generate();
  const Certificate leaf = IssueTo(authority, key, NodeIdentity(), now);
  ASSERT_TRUE(
      WritePublic(folder_.File("ca.pem"), authority.certificate().ToPem())
          .ok());
  ASSERT_TRUE(WritePublic(folder_.File("cert.pem"), leaf.ToPem()).ok());
  ASSERT_TRUE(WritePrivate(folder_.File("key.pem"), key.ToPem()).ok());
  EXPECT_TRUE(
      Shell("openssl verify -x509_strict -purpose sslserver -CAfile "
            "ca.pem cert.pem && openssl verify -x509_strict -purpose "
            "sslclient -CAfile ca.pem cert.pem"))
      << Content("out");
  EXPECT_TRUE(
      Shell("openssl pkey -in key.pem -pubout > a && openssl x509 -in "
            "cert.pem -pubkey -noout > b && cmp a b"))
      << Content("out");
}

TEST_F(OpensslCommand, ItsRequestIsSigned) {
  ASSERT_TRUE(
      Shell("openssl req -new -newkey ec -pkeyopt "
            "ec_paramgen_curve:P-256 -nodes -keyout key.pem -subj "
            "/CN=x -addext "
            "subjectAltName=URI:spiffe://plant-4/admin/x -out box.csr"))
      << Content("out");
  const absl::StatusOr<Certificate> leaf = MakeAuthority().Sign(
      Content("box.csr"), NodeIdentity(), {Now(), absl::Hours(1)});
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_EQ(*leaf->identity(), NodeIdentity());
}

}  // namespace
}  // namespace dfl::tls
