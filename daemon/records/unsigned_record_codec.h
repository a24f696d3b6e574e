// The judge of records in an insecure network, and their maker. Nobody signs
// there: whoever reaches a node is believed, in orders as in everything else.
// The records are for one plan and one wanted phase on all nodes, not for
// safety.
//
// What is checked, in this order; the first that fails is the answer
//   1. The bytes are a SignedRecord of at most 8 MiB + 64 KiB in its one
//      serialised form, without a field that is unknown here, and so is its
//      body.
//   2. Nobody signed it: whose signature it is could not be told here.
//   3. Kind, cluster, subject and counter are those of a record of this
//      network. A ban is refused: it would shut nobody out.
//   4. The author is "insecure:" and a name.
//   5. The content is the one whose hash the body has, and what its kind takes.
#ifndef DFL_RECORDS_UNSIGNED_RECORD_CODEC_H_
#define DFL_RECORDS_UNSIGNED_RECORD_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/records/record_content.h"
#include "daemon/runtime/gossip/record.h"

namespace dfl::records {

// In front of the name of an author whom nobody vouches for.
inline constexpr absl::string_view kUnsignedAuthor = "insecure:";
inline constexpr size_t kMaxUnsignedName = 128;

// A record for the insecure network `cluster`, which may be "". `author` is who
// the author says to be: what is no printable ASCII in it is written as "?",
// and what is too long is cut off. `counter` as for SignRecord.
// Errors: as UnsignedRecordCodec::Open.
absl::StatusOr<std::string> MakeUnsignedRecord(
    RecordKind kind, const std::string& subject, uint64_t counter,
    const std::string& content, const std::string& cluster,
    absl::string_view author, absl::Time now);

// Thread-safe.
class UnsignedRecordCodec final : public runtime::RecordJudge {
 public:
  // For the insecure network `cluster`; "": it has no name.
  explicit UnsignedRecordCodec(std::string cluster);

  // runtime::RecordJudge
  // Errors of Open, by the first check that fails:
  //   INVALID_ARGUMENT     1, 4 and 5
  //   FAILED_PRECONDITION  2, another cluster, a ban
  bool Knows(int32_t kind) const override;
  absl::StatusOr<runtime::Record> Open(absl::string_view bytes) const override;
  // The same: nobody loses the judge's trust here.
  absl::StatusOr<runtime::Record> Reopen(
      absl::string_view bytes) const override {
    return Open(bytes);
  }
  absl::Status CheckAuthor(const runtime::Record& /*record*/) const override {
    return absl::OkStatus();
  }

 private:
  const std::string cluster_;
};

}  // namespace dfl::records

#endif  // DFL_RECORDS_UNSIGNED_RECORD_CODEC_H_
