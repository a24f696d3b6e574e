#include "daemon/enrol/token_book.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/atomic_file.h"
#include "daemon/base/ids.h"
#include "daemon/base/sha256.h"
#include "daemon/base/status_macros.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"
#include "daemon/tls/key_file.h"
#include "dfl/storage/v1/token_book.pb.h"

namespace dfl::enrol {
namespace {

using dfl::storage::v1::IssuedToken;
using dfl::storage::v1::TokenBookFile;

constexpr uint32_t kFormatVersion = 1;
constexpr size_t kIdBytes = 8;
constexpr size_t kHashBytes = 32;
constexpr int kMaxTokens = 4096;
constexpr uint32_t kWritableForOthers = 022;
constexpr absl::Duration kKeptAfterItsEnd = absl::Hours(24 * 30);

// Holds the folder's lock while it lives.
class Lock {
 public:
  static absl::StatusOr<Lock> Take(const std::string& folder) {
    const std::string path = folder + "/tokens.lock";
    Lock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock.fd_ < 0) return FileError(path, "open");
    int locked = -1;
    do {
      locked = flock(lock.fd_, LOCK_EX);
    } while (locked != 0 && errno == EINTR);
    if (locked != 0) return FileError(path, "lock");
    return lock;
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}

  int fd_;
};

// "": nothing is wrong with the book.
std::string DamageOf(const TokenBookFile& book) {
  const std::string& issuer = book.issuer();
  if (issuer.size() != 2 * kIdBytes ||
      !std::all_of(issuer.begin(), issuer.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    return "it names no issuer";
  }
  for (int i = 0; i < book.tokens_size(); ++i) {
    const IssuedToken& token = book.tokens(i);
    if (token.secret_sha256().size() != kHashBytes) {
      return absl::StrCat("token ", i + 1, " has no hash of its secret");
    }
    if (token.node().empty())
      return absl::StrCat("token ", i + 1, " has no node");
  }
  return "";
}

absl::Status Damaged(const std::string& path, absl::string_view how) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is damaged (", how,
                   "); remove it, which makes every join token that was not "
                   "spent yet invalid, and make new ones"));
}

std::string BookPath(const std::string& folder) { return folder + "/tokens"; }

// An empty book when there is no file.
absl::StatusOr<TokenBookFile> Load(const std::string& folder) {
  const tls::PemFile file = tls::ReadPemFile(BookPath(folder));
  if (file.error == ENOENT) return TokenBookFile();
  DFL_RETURN_IF_ERROR(tls::CheckRead(file, ""));
  if ((file.mode & kWritableForOthers) != 0 ||
      (file.owner != geteuid() && file.owner != 0)) {
    return absl::PermissionDeniedError(absl::StrCat(
        file.path, ": others may write to it, and so admit nodes; `chown ",
        geteuid(), " ", file.path, "` and `chmod 600 ", file.path, "`"));
  }
  TokenBookFile book;
  if (!book.ParseFromString(file.content) || book.format_version() == 0) {
    return Damaged(file.path, "it is torn or no book of tokens");
  }
  if (book.format_version() > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.path, ": is of version ", book.format_version(),
        ", and this program knows ", kFormatVersion, "; use a newer one"));
  }
  const std::string damage = DamageOf(book);
  if (!damage.empty()) return Damaged(file.path, damage);
  return book;
}

absl::Status Save(const std::string& folder, const TokenBookFile& book) {
  const std::string path = BookPath(folder);
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                       AtomicFile::CreatePrivate(path, path + ".new"));
  DFL_RETURN_IF_ERROR(file->Append(book.SerializeAsString()));
  return file->Commit();
}

std::string SecretKey(absl::string_view secret) {
  return absl::HexStringToBytes(Sha256Hex(secret));
}

std::string IdOf(const IssuedToken& token) {
  return absl::BytesToHexString(token.secret_sha256()).substr(0, 16);
}

absl::Time Expiry(const IssuedToken& token) {
  return absl::FromUnixSeconds(token.expires_unix_seconds());
}

TokenState StateOf(const IssuedToken& token, absl::Time now) {
  if (token.spent_unix_seconds() != 0) return TokenState::kSpent;
  if (token.revoked_unix_seconds() != 0) return TokenState::kRevoked;
  return now < Expiry(token) ? TokenState::kOpen : TokenState::kExpired;
}

bool Forgotten(const IssuedToken& token, absl::Time now) {
  return now >= Expiry(token) + kKeptAfterItsEnd;
}

void Forget(TokenBookFile& book, absl::Time now) {
  auto& tokens = *book.mutable_tokens();
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(),
                              [&](const IssuedToken& token) {
                                return Forgotten(token, now);
                              }),
               tokens.end());
}

std::string NewOne(const std::string& node) {
  return absl::StrCat("make a new one with `dflctl token create --node ", node,
                      "`");
}

absl::Status CheckUse(const IssuedToken& token, const TokenUse& use,
                      absl::Time now) {
  if (use.node != token.node()) {
    return absl::PermissionDeniedError(
        absl::StrCat("the join token is for node ", token.node(), ", and \"",
                     use.node, "\" asks with it; ", NewOne("NAME")));
  }
  if (token.revoked_unix_seconds() != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the join token was revoked at ",
        tls::TimeText(absl::FromUnixSeconds(token.revoked_unix_seconds())),
        "; ", NewOne(token.node())));
  }
  if (token.spent_unix_seconds() != 0 && token.key_sha256() != use.key_sha256) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the join token was spent at ",
        tls::TimeText(absl::FromUnixSeconds(token.spent_unix_seconds())),
        " for another key. If that was not this node, somebody else has a "
        "certificate as ",
        token.node(), ": ban it with `dflctl peer ban`. Else ",
        NewOne(token.node())));
  }
  if (now >= Expiry(token)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the join token expired at ", tls::TimeText(Expiry(token)),
                     ", and the issuer's clock says ", tls::TimeText(now), "; ",
                     NewOne(token.node())));
  }
  return absl::OkStatus();
}

IssuedToken* FindSecret(TokenBookFile& book, absl::string_view secret) {
  const std::string wanted = SecretKey(secret);
  for (IssuedToken& token : *book.mutable_tokens()) {
    if (token.secret_sha256() == wanted) return &token;
  }
  return nullptr;
}

}  // namespace

absl::string_view Name(TokenState state) {
  switch (state) {
    case TokenState::kOpen:
      return "open";
    case TokenState::kSpent:
      return "spent";
    case TokenState::kRevoked:
      return "revoked";
    case TokenState::kExpired:
      return "expired";
  }
  return "open";
}

TokenBook::TokenBook(std::string folder, std::string issuer)
    : folder_(std::move(folder)), issuer_(std::move(issuer)) {}

absl::StatusOr<TokenBook> TokenBook::Open(const std::string& folder) {
  DFL_ASSIGN_OR_RETURN(const Lock lock, Lock::Take(folder));
  DFL_ASSIGN_OR_RETURN(TokenBookFile book, Load(folder));
  if (book.issuer().empty()) {
    book.set_format_version(kFormatVersion);
    book.set_issuer(absl::BytesToHexString(RandomBytes(kIdBytes)));
    DFL_RETURN_IF_ERROR(Save(folder, book));
  }
  return TokenBook(folder, book.issuer());
}

absl::StatusOr<JoinToken> TokenBook::Create(const std::string& cluster,
                                            const std::string& node,
                                            const std::string& authority_sha256,
                                            absl::Duration ttl,
                                            absl::Time now) const {
  DFL_RETURN_IF_ERROR(ValidateNodeName(node));
  if (ttl < absl::Seconds(1) || ttl > kLongestTokenLife) {
    return absl::InvalidArgumentError(
        absl::StrCat("a join token's time to live: ", absl::FormatDuration(ttl),
                     " is not allowed; allowed: 1s to ",
                     absl::FormatDuration(kLongestTokenLife)));
  }
  JoinToken token;
  token.issuer = issuer_;
  token.cluster = cluster;
  token.node = node;
  token.expires = absl::FromUnixSeconds(absl::ToUnixSeconds(now + ttl));
  token.authority_sha256 = authority_sha256;
  token.secret = RandomBytes(kSecretBytes);

  DFL_ASSIGN_OR_RETURN(const Lock lock, Lock::Take(folder_));
  DFL_ASSIGN_OR_RETURN(TokenBookFile book, Load(folder_));
  if (book.issuer() != issuer_) {
    return absl::FailedPreconditionError(
        absl::StrCat(BookPath(folder_),
                     ": was replaced by that of another issuer; try "
                     "again"));
  }
  Forget(book, now);
  if (book.tokens_size() >= kMaxTokens) {
    return absl::ResourceExhaustedError(absl::StrCat(
        BookPath(folder_), ": holds ", kMaxTokens,
        " join tokens, which is as many as allowed; those that ended a month "
        "ago are forgotten"));
  }
  IssuedToken& entry = *book.add_tokens();
  entry.set_secret_sha256(SecretKey(token.secret));
  entry.set_node(node);
  entry.set_created_unix_seconds(absl::ToUnixSeconds(now));
  entry.set_expires_unix_seconds(absl::ToUnixSeconds(token.expires));
  DFL_RETURN_IF_ERROR(Save(folder_, book));
  return token;
}

absl::StatusOr<std::vector<TokenEntry>> TokenBook::List(absl::Time now) const {
  // The file is replaced in one step: reading it takes no lock.
  DFL_ASSIGN_OR_RETURN(const TokenBookFile book, Load(folder_));
  std::vector<TokenEntry> entries;
  for (const IssuedToken& token : book.tokens()) {
    if (Forgotten(token, now)) continue;
    TokenEntry entry;
    entry.id = IdOf(token);
    entry.node = token.node();
    entry.state = StateOf(token, now);
    entry.created = absl::FromUnixSeconds(token.created_unix_seconds());
    entry.expires = Expiry(token);
    if (entry.state == TokenState::kSpent) {
      entry.ended = absl::FromUnixSeconds(token.spent_unix_seconds());
    } else if (entry.state == TokenState::kRevoked) {
      entry.ended = absl::FromUnixSeconds(token.revoked_unix_seconds());
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::Status TokenBook::Revoke(const std::string& id, absl::Time now) const {
  DFL_ASSIGN_OR_RETURN(const Lock lock, Lock::Take(folder_));
  DFL_ASSIGN_OR_RETURN(TokenBookFile book, Load(folder_));
  for (IssuedToken& token : *book.mutable_tokens()) {
    if (IdOf(token) != id) continue;
    const TokenState state = StateOf(token, now);
    if (state == TokenState::kRevoked) return absl::OkStatus();
    if (state == TokenState::kSpent) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the join token ", id, " was spent already, and ", token.node(),
          " has its certificate; to shut it out: `dflctl peer ban ",
          token.node(), "`"));
    }
    if (state == TokenState::kExpired) {
      return absl::FailedPreconditionError(
          absl::StrCat("the join token ", id, " has expired already, at ",
                       tls::TimeText(Expiry(token))));
    }
    token.set_revoked_unix_seconds(absl::ToUnixSeconds(now));
    Forget(book, now);
    return Save(folder_, book);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no join token \"", absl::CHexEscape(id), "\" in ",
                   BookPath(folder_), "; `dflctl token list` lists them"));
}

absl::Status TokenBook::Redeem(
    absl::string_view secret, const TokenUse& use, absl::Time now,
    absl::FunctionRef<absl::Status(const std::string& node)> make) const {
  DFL_ASSIGN_OR_RETURN(const Lock lock, Lock::Take(folder_));
  DFL_ASSIGN_OR_RETURN(TokenBookFile book, Load(folder_));
  IssuedToken* token = FindSecret(book, secret);
  if (token == nullptr || book.issuer() != issuer_) {
    return absl::NotFoundError(
        absl::StrCat("this issuer knows no such join token; ", NewOne("NAME"),
                     " where it serves"));
  }
  DFL_RETURN_IF_ERROR(CheckUse(*token, use, now));
  DFL_RETURN_IF_ERROR(make(token->node()));
  if (token->spent_unix_seconds() != 0) return absl::OkStatus();
  token->set_spent_unix_seconds(absl::ToUnixSeconds(now));
  token->set_key_sha256(use.key_sha256);
  Forget(book, now);
  return Save(folder_, book);
}

}  // namespace dfl::enrol
