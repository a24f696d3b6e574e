// The judge of signed records: whether a person who may give orders in this
// network signed these bytes.
//
// What is checked, in this order; the first that fails is the answer
//   1. The bytes are a SignedRecord of at most 8 MiB + 64 KiB in its one
//      serialised form, without a field that is unknown here, and so is its
//      body; somebody signed it.
//   2. Kind, cluster, subject and counter are those of a record of this
//      network.
//   3. The author is who the leaf certificate speaks for; each further
//      certificate signed the one before it.
//   4. The author is an operator or an admin of this cluster; only an admin
//      bans an admin. Neither node nor viewer nor issuer gives orders.
//   5. The network's authorities vouch for the author's certificate now, and
//      for the last one of the record; the author is not banned.
//   6. The record was signed no more than a day after now.
//   7. The signature is that of the leaf's key over the body.
//   8. The content is the one whose hash the body has, and what its kind takes.
//
// Who passed the record on is no part of it.
#ifndef DFL_RECORDS_SIGNED_RECORD_CODEC_H_
#define DFL_RECORDS_SIGNED_RECORD_CODEC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/runtime/gossip/record.h"
#include "daemon/tls/certificate.h"
#include "daemon/tls/identity.h"

namespace dfl::records {

// Of a record. Each certificate in DER form.
inline constexpr int kMaxCertificates = 8;
inline constexpr size_t kMaxCertificateBytes = 8 << 10;
inline constexpr absl::Duration kMaxClockLead = absl::Hours(24);
// Signed in front of the body, so that no other signature of the same key is
// one of a record.
inline constexpr absl::string_view kSignedPrefix = "dfl-record-v1\n";

// Thread-safe.
class SignedRecordCodec final : public runtime::RecordJudge {
 public:
  // For the network `cluster`. `clock` gives the present; it is called by any
  // thread that calls this object.
  SignedRecordCodec(std::string cluster, std::function<absl::Time()> clock);

  // The authorities from now on; before the first call there are none, and
  // nobody may give orders.
  void SetBundle(std::vector<tls::Certificate> bundle)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Who is shut out from now on.
  void SetBanned(std::vector<tls::Identity> banned) ABSL_LOCKS_EXCLUDED(mutex_);

  // runtime::RecordJudge
  // Errors of Open, by the first check that fails:
  //   INVALID_ARGUMENT     1 to 3, 7 and 8
  //   PERMISSION_DENIED    4, nobody signed it, or the author is banned
  //   FAILED_PRECONDITION  another cluster, 5 and 6
  bool Knows(int32_t kind) const override;
  absl::StatusOr<runtime::Record> Open(absl::string_view bytes) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // All checks but 4 to 6.
  absl::StatusOr<runtime::Record> Reopen(absl::string_view bytes) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // 4 and 5.
  absl::Status CheckAuthor(const runtime::Record& record) const override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<runtime::Record> Parse(absl::string_view bytes,
                                        bool judge) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Judge(const runtime::Record& record,
                     absl::Span<const tls::Certificate> chain) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string cluster_;
  const std::function<absl::Time()> clock_;
  mutable absl::Mutex mutex_;
  std::vector<tls::Certificate> bundle_ ABSL_GUARDED_BY(mutex_);
  std::vector<tls::Identity> banned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::records

#endif  // DFL_RECORDS_SIGNED_RECORD_CODEC_H_
