// Redeems join tokens: signs the certificates of new nodes.
//
// An issuer works on the folder of a network's authority, where it keeps
//   tokens              its join tokens, see token_book.h
//   issuer/server.pem   the certificate that it shows, with the key to it
//   node/NAME/cert.pem  a copy of each certificate that it gave
// It shows a certificate of its own, good for a day and for nothing else, and
// the authority's. Nobody else shows one, so everybody may connect: requests,
// connections, threads and memory are bounded.
//
// Thread-safe.
#ifndef DFL_ENROL_ISSUER_H_
#define DFL_ENROL_ISSUER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::enrol {

// For the log: an answer that was given, or what keeps the issuer from taking
// up new files.
struct IssuerNote {
  std::string host;     // who asked; "": it is about the issuer's own files
  std::string node;     // as it says
  absl::Status status;  // OK: a certificate was given
};

// "gave box-1 at 192.0.2.7 its certificate", or what was refused and why.
std::string NoteText(const IssuerNote& note);

struct IssuerOptions {
  std::string folder;  // of the authority
  std::string listen;  // host:port; port 0: the system chooses
  // Of the certificates that it gives.
  absl::Duration lifetime = absl::Hours(24 * 365);
  // How often it looks at its files.
  absl::Duration upkeep = absl::Seconds(5);
  // Called on threads of gRPC and of the issuer.
  std::function<void(const IssuerNote&)> note = [](const IssuerNote&) {};
  std::function<absl::Time()> clock = [] { return absl::Now(); };
  // By which wrong secrets are counted: no setting of the clock forgets them.
  std::function<absl::Time()> steady = [] { return SteadyNow(); };
};

class Issuer {
 public:
  // Serves once it returns.
  // Errors: as LoadAuthority, TokenBook::Open and net::BoundedAcceptor::Bind.
  static absl::StatusOr<std::unique_ptr<Issuer>> Start(IssuerOptions options);
  // Ends what is being answered.
  virtual ~Issuer() = default;

  // host:port where it listens.
  virtual const std::string& address() const = 0;

  // Takes up an authority that was replaced, and renews the certificate that is
  // shown, when it is time. The issuer does it by itself, too.
  // Errors: as Start; what was in use stays in use.
  virtual absl::Status Maintain() = 0;
};

}  // namespace dfl::enrol

#endif  // DFL_ENROL_ISSUER_H_
