// The bytes of a book of records on disk:
//
//   "dfl-records 1\n", then items, then the CRC-32C of all before it
//   item: 'C' or 'H', length (8 bytes, little-endian), payload
//     C  a record that counts, as it travels; what overrides comes first
//     H  the name, author, time and text of one that was replaced
//
// What counts is read also where the checksum is wrong: its signature tells
// whether it is whole. The history is then left out.
#ifndef DFL_RUNTIME_GOSSIP_BOOK_FILE_H_
#define DFL_RUNTIME_GOSSIP_BOOK_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/ports/frames.h"

namespace dfl::runtime {

// A record that was replaced, without its content.
struct PastRecord {
  ports::RecordId id;
  std::string author;
  int64_t unix_nanos = 0;
  std::string text;
};

struct BookContent {
  std::vector<std::string> current;
  std::vector<PastRecord> history;
  bool damaged = false;  // something is missing or wrong
};

std::string EncodeBook(absl::Span<const absl::string_view> current,
                       absl::Span<const PastRecord> history);

// Never fails: what cannot be read is left out.
BookContent DecodeBook(absl::string_view bytes);

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GOSSIP_BOOK_FILE_H_
