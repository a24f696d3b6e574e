// Records that a test writes by hand, and a judge of them. What it calls a
// signature is a hash that anybody could make; the tests' peers do not.
#ifndef DFL_TESTS_UNIT_GOSSIP_FAKE_JUDGE_H_
#define DFL_TESTS_UNIT_GOSSIP_FAKE_JUDGE_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/sha256.h"
#include "daemon/runtime/gossip/record.h"

namespace dfl::runtime {

struct FakeRecord {
  int32_t kind = 1;
  std::string subject = "";
  uint64_t counter = 1;
  int64_t unix_nanos = 100;
  std::string author = "ann";
  std::vector<std::string> scope = {};
  std::string content = "content";
};

// Its first line is the body, its second the signature, the rest the content.
inline std::string BytesOf(const FakeRecord& r) {
  const std::string body = absl::StrJoin(
      std::vector<std::string>{
          absl::StrCat(r.kind), r.subject, absl::StrCat(r.counter),
          absl::StrCat(r.unix_nanos), r.author, absl::StrJoin(r.scope, " "),
          Sha256Hex(r.content)},
      "|");
  return absl::StrCat(body, "\n", Sha256Hex(absl::StrCat("key", body)), "\n",
                      r.content);
}

class FakeJudge final : public RecordJudge {
 public:
  bool Knows(int32_t kind) const override { return kind <= 3; }

  absl::StatusOr<Record> Open(absl::string_view bytes) const override {
    ++opened_;
    absl::StatusOr<Record> record = Reopen(bytes);
    if (!record.ok()) return record;
    const absl::Status author = CheckAuthor(*record);
    if (!author.ok()) return author;
    return record;
  }

  absl::StatusOr<Record> Reopen(absl::string_view bytes) const override {
    const std::vector<std::string> lines =
        absl::StrSplit(bytes, absl::MaxSplits('\n', 2));
    if (lines.size() != 3) return absl::InvalidArgumentError("no record");
    const std::vector<std::string> fields = absl::StrSplit(lines[0], '|');
    if (lines[1] != Sha256Hex(absl::StrCat("key", lines[0])) ||
        fields.size() != 7) {
      return absl::InvalidArgumentError("the signature is wrong");
    }
    if (fields[6] != Sha256Hex(lines[2])) {
      return absl::InvalidArgumentError("the content is another");
    }
    Record record;
    if (!absl::SimpleAtoi(fields[0], &record.id.kind) ||
        !absl::SimpleAtoi(fields[2], &record.id.counter) ||
        !absl::SimpleAtoi(fields[3], &record.unix_nanos)) {
      return absl::InvalidArgumentError("no numbers");
    }
    record.id.subject = fields[1];
    record.id.hash = absl::HexStringToBytes(Sha256Hex(lines[0]));
    record.author = fields[4];
    record.scope = absl::StrSplit(fields[5], ' ', absl::SkipEmpty());
    record.text =
        absl::StrCat("record ", fields[0], ".", fields[2], " of ", fields[4]);
    record.bytes = std::string(bytes);
    record.content_begin = bytes.size() - lines[2].size();
    return record;
  }

  absl::Status CheckAuthor(const Record& record) const override {
    if (shunned_.count(record.author) == 0) return absl::OkStatus();
    return absl::PermissionDeniedError(
        absl::StrCat(record.author, " is banned"));
  }

  void Shun(const std::string& author) { shunned_.insert(author); }
  void Pardon(const std::string& author) { shunned_.erase(author); }
  // How many records were opened.
  int64_t opened() const { return opened_; }

 private:
  std::set<std::string> shunned_;
  mutable int64_t opened_ = 0;
};

inline Record Opened(const FakeRecord& record) {
  return *FakeJudge().Reopen(BytesOf(record));
}
inline ports::RecordId IdOf(const FakeRecord& record) {
  return Opened(record).id;
}

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_GOSSIP_FAKE_JUDGE_H_
