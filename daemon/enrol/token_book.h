// The join tokens of one issuer, on disk: those that can be redeemed, and those
// that were spent, revoked or have expired. A book is an issuer: it has an id
// of its own, and two books of one authority do not redeem each other's tokens.
//
// The file holds no secret, only the SHA-256 of each. Each change is made under
// a lock and replaces the file in one step, so several processes may use one
// book: one that serves, others that make tokens. Thread-safe.
#ifndef DFL_ENROL_TOKEN_BOOK_H_
#define DFL_ENROL_TOKEN_BOOK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/enrol/join_token.h"

namespace dfl::enrol {

inline constexpr absl::Duration kLongestTokenLife = absl::Hours(24 * 30);

enum class TokenState { kOpen, kSpent, kRevoked, kExpired };

// "open", "spent", "revoked", "expired".
absl::string_view Name(TokenState state);

struct TokenEntry {
  std::string id;  // TokenId of its secret
  std::string node;
  TokenState state = TokenState::kOpen;
  absl::Time created;
  absl::Time expires;
  std::optional<absl::Time> ended;  // when it was spent or revoked
};

// Who asks for a certificate.
struct TokenUse {
  std::string node;        // as its signing request says
  std::string key_sha256;  // of its public key
};

class TokenBook {
 public:
  // The book in `folder`, which must be there. A new book gets an id.
  // Errors: as FileError; FAILED_PRECONDITION when the file is damaged or of a
  // later version; PERMISSION_DENIED when others may write to it.
  static absl::StatusOr<TokenBook> Open(const std::string& folder);

  const std::string& issuer() const { return issuer_; }

  // A new token for `node`, whose issuer shows `authority_sha256`.
  // Errors: INVALID_ARGUMENT for a bad name or a time to live that is not in
  // 1 s to kLongestTokenLife; RESOURCE_EXHAUSTED when there are too many; as
  // Open.
  absl::StatusOr<JoinToken> Create(const std::string& cluster,
                                   const std::string& node,
                                   const std::string& authority_sha256,
                                   absl::Duration ttl, absl::Time now) const;

  // In the order in which they were made. One that ended a month ago is left
  // out, and is forgotten by the next change.
  // Errors: as Open.
  absl::StatusOr<std::vector<TokenEntry>> List(absl::Time now) const;

  // Errors: NOT_FOUND when there is no token `id`; FAILED_PRECONDITION when it
  // was spent or has expired; as Open.
  absl::Status Revoke(const std::string& id, absl::Time now) const;

  // Spends the token with `secret`. `make` is called for its node while it can
  // be redeemed, and makes the certificate; it is not spent when `make` fails.
  // When this returns OK, the spent token is on disk. The same key may redeem
  // it again as long as it lives.
  // Errors: NOT_FOUND for an unknown secret; PERMISSION_DENIED when it is for
  // another node; FAILED_PRECONDITION when it was spent for another key,
  // revoked, or has expired; those of `make`; as Open.
  absl::Status Redeem(
      absl::string_view secret, const TokenUse& use, absl::Time now,
      absl::FunctionRef<absl::Status(const std::string& node)> make) const;

 private:
  TokenBook(std::string folder, std::string issuer);

  std::string folder_;
  std::string issuer_;
};

}  // namespace dfl::enrol

#endif  // DFL_ENROL_TOKEN_BOOK_H_
