// The file of the records that count on a node. The input is tried as it is,
// and once more with its first line and a right checksum.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/runtime/gossip/book_file.h"
#include "daemon/runtime/gossip/record_book.h"
#include "daemon/simports/sim_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seal.h"

namespace dfl::fuzz {
namespace {

using runtime::BookContent;
using runtime::PastRecord;
using runtime::RecordBook;

constexpr absl::string_view kFirstLine = "dfl-records 1\n";

bool Same(const PastRecord& a, const PastRecord& b) {
  return a.id == b.id && a.author == b.author && a.unix_nanos == b.unix_nanos &&
         a.text == b.text;
}

// What was read is written and read again without a loss.
void CheckBook(const std::string& bytes) {
  const BookContent content = runtime::DecodeBook(bytes);
  const std::vector<absl::string_view> current(content.current.begin(),
                                               content.current.end());
  const BookContent again =
      runtime::DecodeBook(runtime::EncodeBook(current, content.history));
  DFL_CHECK(!again.damaged && again.current == content.current);
  DFL_CHECK(again.history.size() == content.history.size());
  for (size_t i = 0; i < again.history.size(); ++i) {
    DFL_CHECK(Same(again.history[i], content.history[i]));
  }
}

// A node starts on the file; only what its judge takes counts.
void CheckLoad(const std::string& bytes) {
  simports::SimFiles files;
  DFL_CHECK(files.WriteAtomically(RecordBook::kFile, bytes).ok());
  const records::UnsignedRecordCodec judge("");
  RecordBook book(judge, &files);
  DFL_CHECK(book.Load().ok());
  for (const RecordBook::Held& held : book.current()) {
    DFL_CHECK(judge.Open(held.record->bytes).ok());
    DFL_CHECK(book.Find(held.record->id) != nullptr);
  }
}

}  // namespace

DFL_FUZZ_TARGET(record_book)(absl::string_view bytes) {
  std::string file(bytes);
  CheckBook(file);
  CheckLoad(file);
  if (!absl::StartsWith(file, kFirstLine))
    file = absl::StrCat(kFirstLine, file);
  file += "....";
  SealEnd(&file);
  CheckBook(file);
  CheckLoad(file);
}

}  // namespace dfl::fuzz
