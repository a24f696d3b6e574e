// The form that all records have, whoever judges their authors: the checks that
// SignedRecordCodec and UnsignedRecordCodec share.
#ifndef DFL_RECORDS_RECORD_FORM_H_
#define DFL_RECORDS_RECORD_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/records/record_content.h"
#include "daemon/runtime/gossip/record.h"
#include "dfl/record/v1/record.pb.h"

namespace dfl::records {

// INVALID_ARGUMENT "the record WHY".
absl::Status Malformed(absl::string_view why);
// In quotes, on one line and of bounded length.
std::string Quoted(absl::string_view text);

// The message in `bytes`: of at most 8 MiB + 64 KiB, in its one serialised
// form, without a field that is unknown here. Signature, certificates, body and
// content are not looked at.
// Errors: INVALID_ARGUMENT.
absl::StatusOr<dfl::record::v1::SignedRecord> ParseEnvelope(
    absl::string_view bytes);

// The body, of a record for the network `cluster`, with a kind, a subject that
// fits it and a counter. The author is not looked at.
// Errors: INVALID_ARGUMENT; FAILED_PRECONDITION for another network.
absl::StatusOr<dfl::record::v1::RecordBody> ParseBody(
    const std::string& bytes, const std::string& cluster);

// The record but for its scope and text.
runtime::Record RecordOf(const dfl::record::v1::SignedRecord& envelope,
                         const dfl::record::v1::RecordBody& body,
                         absl::string_view bytes);

// Checks the content, and sets scope and text of `record`, which RecordOf made.
// Errors: INVALID_ARGUMENT when it is not the one whose hash the body has, or
// not what its kind takes.
absl::Status TakeContent(const dfl::record::v1::RecordBody& body,
                         runtime::Record& record);

// A body of `content`.
dfl::record::v1::RecordBody BodyOf(const std::string& cluster, RecordKind kind,
                                   const std::string& subject, uint64_t counter,
                                   const std::string& author,
                                   const std::string& content, absl::Time now);

}  // namespace dfl::records

#endif  // DFL_RECORDS_RECORD_FORM_H_
