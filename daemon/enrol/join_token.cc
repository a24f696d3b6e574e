#include "daemon/enrol/join_token.h"

#include <unistd.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/tls/identity.h"
#include "dfl/enrol/v1/enrol.pb.h"

namespace dfl::enrol {
namespace {

constexpr absl::string_view kPrefix = "dfl1.";
constexpr size_t kChecksumBytes = 4;
constexpr size_t kDigestBytes = 32;
constexpr size_t kIdDigits = 16;
// Of a token with the longest names, with room to spare.
constexpr size_t kMaxText = 2048;

std::string Checksum(absl::string_view content) {
  return absl::HexStringToBytes(
      Sha256Hex(content).substr(0, 2 * kChecksumBytes));
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the join token ", what,
                   "; copy the whole line that `dflctl token create` printed, "
                   "which begins with ",
                   kPrefix));
}

bool IsId(absl::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

bool Usable(const JoinToken& token) {
  return IsId(token.issuer) && tls::ValidateClusterName(token.cluster).ok() &&
         ValidateNodeName(token.node).ok() &&
         token.authority_sha256.size() == 2 * kDigestBytes &&
         token.secret.size() == kSecretBytes &&
         token.expires > absl::UnixEpoch();
}

}  // namespace

std::string ToText(const JoinToken& token) {
  dfl::enrol::v1::JoinToken content;
  content.set_issuer(token.issuer);
  content.set_cluster(token.cluster);
  content.set_node(token.node);
  content.set_expires_unix_seconds(absl::ToUnixSeconds(token.expires));
  content.set_authority_sha256(absl::HexStringToBytes(token.authority_sha256));
  content.set_secret(token.secret);
  const std::string bytes = content.SerializeAsString();
  return absl::StrCat(
      kPrefix, absl::WebSafeBase64Escape(absl::StrCat(bytes, Checksum(bytes))));
}

absl::StatusOr<JoinToken> ParseJoinToken(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return Wrong("is empty");
  if (!absl::ConsumePrefix(&text, kPrefix)) {
    if (absl::StartsWith(text, "dfl") && absl::StrContains(text, '.')) {
      return Wrong("was made by a later version than this one");
    }
    return Wrong("does not look like one");
  }
  std::string bytes;
  if (text.size() > kMaxText || !absl::WebSafeBase64Unescape(text, &bytes) ||
      bytes.size() <= kChecksumBytes) {
    return Wrong("is damaged");
  }
  const absl::string_view content =
      absl::string_view(bytes).substr(0, bytes.size() - kChecksumBytes);
  dfl::enrol::v1::JoinToken parsed;
  if (Checksum(content) != bytes.substr(content.size()) ||
      !parsed.ParseFromArray(content.data(),
                             static_cast<int>(content.size()))) {
    return Wrong("is damaged");
  }
  JoinToken token;
  token.issuer = parsed.issuer();
  token.cluster = parsed.cluster();
  token.node = parsed.node();
  token.expires = absl::FromUnixSeconds(parsed.expires_unix_seconds());
  token.authority_sha256 = absl::BytesToHexString(parsed.authority_sha256());
  token.secret = parsed.secret();
  // A field that is not known would be lost here.
  if (!Usable(token) || ToText(token) != absl::StrCat(kPrefix, text)) {
    return Wrong("holds something that this version does not know");
  }
  return token;
}

std::string TokenId(absl::string_view secret) {
  return Sha256Hex(secret).substr(0, kIdDigits);
}

std::string RandomBytes(size_t bytes) {
  std::string random(bytes, '\0');
  DFL_CHECK(getentropy(random.data(), random.size()) == 0);
  return random;
}

}  // namespace dfl::enrol
