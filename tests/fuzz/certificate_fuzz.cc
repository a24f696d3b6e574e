// Certificates: of a peer, of a record's author, of a bundle of authorities.
// The first byte says whether in PEM or in DER form.
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/peer_check.h"
#include "daemon/tls/signature.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/nobody_asked.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

using tls::Certificate;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr size_t kMostText = 259;  // 256 and "..."

void CheckCertificate(const Certificate& certificate) {
  DFL_CHECK(certificate.fingerprint().size() == 64);
  DFL_CHECK(certificate.subject().size() <= kMostText);
  DFL_CHECK(certificate.issuer().size() <= kMostText);
  if (certificate.identity().ok()) {
    DFL_CHECK(tls::ToUri(*certificate.identity()) == *certificate.uri());
    DFL_CHECK(tls::Validate(*certificate.identity()).ok());
  }
  (void)tls::TimeText(certificate.not_after());
  const auto der = tls::CertificateFromDer(tls::ToDer(certificate), "here");
  DFL_CHECK(der.ok() && der->fingerprint() == certificate.fingerprint());
  const auto pem = tls::ParseCertificates(certificate.ToPem(), "here");
  DFL_CHECK(pem.ok() && pem->size() == 1);
  DFL_CHECK(pem->front().fingerprint() == certificate.fingerprint());
  (void)tls::IsSignedBy(certificate, certificate);
  (void)tls::Verify(certificate, "bytes", "signature");
}

// Whether the authorities among the certificates vouch for the first.
void CheckChain(const std::vector<Certificate>& chain, absl::string_view pem) {
  std::vector<Certificate> bundle;
  for (const Certificate& certificate : chain) {
    if (certificate.is_authority()) bundle.push_back(certificate);
  }
  const tls::ChainVerdict verdict = tls::VerifyChain(chain, bundle, kNow);
  DFL_CHECK(verdict.ok() == verdict.text.empty());
  const tls::Role roles[] = {tls::Role::kNode};
  const auto banned = [](const tls::Identity&) { return false; };
  const tls::PeerVerdict peer =
      tls::CheckPeer({pem, ""}, {bundle, "plant", roles, banned}, kNow);
  if (peer.ok()) {
    DFL_CHECK(verdict.ok() && peer.identity.cluster == "plant" &&
              peer.identity.role == tls::Role::kNode);
  }
}

}  // namespace

DFL_FUZZ_TARGET(certificate)(absl::string_view bytes) {
  LetNobodyBeAsked();
  Pieces pieces(bytes);
  const bool is_der = pieces.Byte() % 2 == 1;
  const absl::string_view text = pieces.Rest();
  if (is_der) {
    const auto certificate = tls::CertificateFromDer(text, "here");
    if (!certificate.ok()) return;
    DFL_CHECK(tls::ToDer(*certificate) == text);
    CheckCertificate(*certificate);
    CheckChain({*certificate}, certificate->ToPem());
    return;
  }
  (void)tls::ParseBundle(text, "here");
  const auto chain = tls::ParseCertificates(text, "here");
  if (!chain.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(chain.status()));
    return;
  }
  DFL_CHECK(!chain->empty() && chain->size() <= 64);
  for (const Certificate& certificate : *chain) CheckCertificate(certificate);
  CheckChain(*chain, text);
}

}  // namespace dfl::fuzz
