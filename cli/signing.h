// Orders that concern the whole network are records: this makes them, signed
// with the caller's key or, for an insecure network, not, and brings one and
// the same record to every target. The nodes pass it on from there.
#ifndef DFL_CLI_SIGNING_H_
#define DFL_CLI_SIGNING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "daemon/records/record_content.h"
#include "daemon/tls/credentials.h"

namespace dfl::cli {

class Signer {
 public:
  // The caller as one who gives orders in the network of the targets.
  // Errors: that of the first target when none answers; INVALID_ARGUMENT when
  // the targets are not of one network; in a secured network as
  // Context::Identity, and PERMISSION_DENIED when the caller's certificate is
  // of another network or of a role that gives no orders.
  static absl::StatusOr<Signer> ForTargets(Context& context);

  // Whether records are signed: the network is secured.
  bool secured() const { return credentials_.has_value(); }
  // Only where secured.
  const tls::Identity& identity() const { return credentials_->identity; }
  // For people: "signed by spiffe://...".
  std::string Says() const;

  // The largest counter that a target knows among the records of a kind and
  // subject; 0: none.
  uint64_t Highest(records::RecordKind kind, const std::string& subject) const;

  // Errors: as records::SignRecord, or MakeUnsignedRecord.
  absl::StatusOr<std::string> Sign(records::RecordKind kind,
                                   const std::string& subject, uint64_t counter,
                                   const std::string& content) const;

 private:
  // Where records come from that nobody signs.
  struct Unsigned {
    std::string cluster;
    std::string author;
  };
  Signer(std::optional<tls::Credentials> credentials, Unsigned instead,
         std::vector<client::RecordInfo> known);

  std::optional<tls::Credentials> credentials_;
  Unsigned instead_;
  std::vector<client::RecordInfo> known_;
};

// The signer of an order that only a secured network takes.
// Errors: as Signer::ForTargets; FAILED_PRECONDITION when the targets are
// insecure, which ends with `instead`.
absl::StatusOr<Signer> RequireSigner(Context& context,
                                     absl::string_view instead);

// Makes a record of `content` under the next counter, and brings it to every
// target. Prints each answer; `fill` adds what the order says to an answer in
// JSON.
ExitCode SignAndPut(Context& context, const Signer& signer,
                    records::RecordKind kind, const std::string& subject,
                    const std::string& content,
                    const std::function<void(Json& entry)>& fill);

}  // namespace dfl::cli

#endif  // DFL_CLI_SIGNING_H_
