// Takes secrets out of text that leaves a machine, such as a bundle for whoever
// helps. It would rather take too much: what it takes is marked.
#ifndef DFL_CLI_SUPPORT_REDACT_H_
#define DFL_CLI_SUPPORT_REDACT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace dfl::cli {

// What stands in place of a secret.
inline constexpr char kRemoved[] = "(removed)";

struct Redacted {
  std::string text;
  int64_t count = 0;  // secrets that were taken out
};

// Takes out
//   - private keys in PEM form, whole, also where line breaks stand as \n;
//   - join tokens (dfl1.…), JSON web tokens (eyJ….….…), keys of AWS (AKIA…);
//   - the value behind a name that has password, passwd, secret, token, apikey,
//     api_key, access_key, private_key, credential, authorization or cookie in
//     it, as in YAML, JSON, an environment or a query: up to the end of the
//     line or of the quoted text;
//   - user and password in a URL, and what follows "Bearer " or "Basic ".
// Certificates, hashes and names stay: they are public, and needed.
Redacted Redact(absl::string_view text);

}  // namespace dfl::cli

#endif  // DFL_CLI_SUPPORT_REDACT_H_
