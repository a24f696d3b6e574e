// Whole credentials for tests that connect, made when a test asks.
#ifndef DFL_TESTS_SUPPORT_MADE_CREDENTIALS_H_
#define DFL_TESTS_SUPPORT_MADE_CREDENTIALS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/tls/credentials.h"
#include "tests/unit/tls/made_certificates.h"

namespace dfl::tls {

// Of `identity`, signed by `issuer` for `lifetime` from `start` on, trusting
// `trusted`; `issuer` alone when that is empty. Nothing is checked.
inline std::shared_ptr<const Credentials> MakeCredentials(
    const Authority& issuer, const Identity& identity,
    std::vector<Certificate> trusted = {}, absl::Time start = absl::Now(),
    absl::Duration lifetime = absl::Hours(24)) {
  const PrivateKey key = PrivateKey::Generate();
  if (trusted.empty()) trusted.push_back(issuer.certificate());
  const Certificate leaf = IssueTo(issuer, key, identity, start, lifetime);
  std::string bundle_pem;
  for (const Certificate& certificate : trusted) {
    bundle_pem += certificate.ToPem();
  }
  return std::make_shared<const Credentials>(Credentials{identity,
                                                         std::move(trusted),
                                                         {leaf},
                                                         key,
                                                         bundle_pem,
                                                         leaf.ToPem(),
                                                         key.ToPem()});
}

// Writes ca.pem, cert.pem and key.pem into `folder`, which is made. The leaf
// comes last, as from a person who copies a folder.
inline void WriteCredentials(const std::string& folder,
                             const Credentials& credentials) {
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WritePublic(folder + "/ca.pem", credentials.bundle_pem).ok());
  ASSERT_TRUE(WritePrivate(folder + "/key.pem", credentials.key_pem).ok());
  ASSERT_TRUE(WritePublic(folder + "/cert.pem", credentials.chain_pem).ok());
}

}  // namespace dfl::tls

#endif  // DFL_TESTS_SUPPORT_MADE_CREDENTIALS_H_
