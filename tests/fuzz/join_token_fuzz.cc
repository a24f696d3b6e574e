// A join token as it is typed or pasted: as it is, and once more as what stands
// in one with a right checksum.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/enrol/join_token.h"
#include "daemon/tls/identity.h"
#include "tests/fuzz/fuzz_target.h"

namespace dfl::fuzz {
namespace {

void CheckToken(absl::string_view text) {
  const auto token = enrol::ParseJoinToken(text);
  if (!token.ok()) {
    DFL_CHECK(absl::IsInvalidArgument(token.status()));
    return;
  }
  DFL_CHECK(enrol::ToText(*token) == absl::StripAsciiWhitespace(text));
  DFL_CHECK(ValidateNodeName(token->node).ok());
  DFL_CHECK(tls::ValidateClusterName(token->cluster).ok());
  DFL_CHECK(token->secret.size() == enrol::kSecretBytes);
  DFL_CHECK(enrol::ParseJoinToken(enrol::ToText(*token)).value() == *token);
}

}  // namespace

DFL_FUZZ_TARGET(join_token)(absl::string_view bytes) {
  CheckToken(bytes);
  const std::string checksum =
      absl::HexStringToBytes(Sha256Hex(bytes).substr(0, 8));
  CheckToken(absl::StrCat(
      "dfl1.", absl::WebSafeBase64Escape(absl::StrCat(bytes, checksum))));
}

}  // namespace dfl::fuzz
