// Makes signed records. Persons do, with their own keys; the daemon never has
// one of theirs.
#ifndef DFL_RECORDS_SIGN_RECORD_H_
#define DFL_RECORDS_SIGN_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/records/record_content.h"
#include "daemon/tls/credentials.h"

namespace dfl::records {

// A record of `author` for the network of their certificate. `counter` is one
// more than the largest that is known: of the kind, for a ban of that subject;
// for a plan it is the plan's version.
//
// The record is checked as every node will do, so that a mistake shows here.
// Errors: as SignedRecordCodec::Open; FAILED_PRECONDITION when the key signs
// nothing.
absl::StatusOr<std::string> SignRecord(
    RecordKind kind, const std::string& subject, uint64_t counter,
    const std::string& content, const tls::Credentials& author, absl::Time now);

}  // namespace dfl::records

#endif  // DFL_RECORDS_SIGN_RECORD_H_
