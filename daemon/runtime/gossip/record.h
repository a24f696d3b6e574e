// A record, opened: an order of a person that nodes pass on to one
// another (proto/dfl/record/v1/record.proto). Whether it counts is a judge's
// decision; this room knows neither signatures nor contents.
#ifndef DFL_RUNTIME_GOSSIP_RECORD_H_
#define DFL_RUNTIME_GOSSIP_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/ports/frames.h"

namespace dfl::runtime {

struct Record {
  ports::RecordId id;
  // Names that it is about, among those of its kind and subject. Empty: all.
  std::vector<std::string> scope;
  std::string author;
  int64_t unix_nanos = 0;  // when it was signed, by the author's clock
  std::string kind_name;   // "ban"
  std::string text;        // what it says in a few words: "banned: stolen"
  // The author's certificates, for RecordJudge::CheckAuthor.
  std::vector<std::string> certificates;
  std::string bytes;         // the whole, as it travels
  size_t content_begin = 0;  // the content is the end of `bytes`

  // For people: "ban 3 on spiffe://... by spiffe://...: banned: stolen".
  std::string Describe() const {
    return absl::StrCat(kind_name, " ", id.counter,
                        id.subject.empty() ? "" : " on ", id.subject, " by ",
                        author, text.empty() ? "" : ": ", text);
  }

  absl::string_view content() const {
    return absl::string_view(bytes).substr(content_begin);
  }
};

// Decides which records count. Implemented by
// records/signed_record_codec.h and records/unsigned_record_codec.h.
class RecordJudge {
 public:
  virtual ~RecordJudge() = default;

  // Records of other kinds are passed over.
  virtual bool Knows(int32_t kind) const = 0;

  // The record in `bytes`, which anybody may have made, after every check.
  // Errors: INVALID_ARGUMENT, PERMISSION_DENIED or FAILED_PRECONDITION says why
  // it is refused.
  virtual absl::StatusOr<Record> Open(absl::string_view bytes) const = 0;

  // The same for a record that was opened once and kept on the node's own disk:
  // the author is not judged again.
  virtual absl::StatusOr<Record> Reopen(absl::string_view bytes) const = 0;

  // OK when Open would still take the author of `record`.
  virtual absl::Status CheckAuthor(const Record& record) const = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GOSSIP_RECORD_H_
