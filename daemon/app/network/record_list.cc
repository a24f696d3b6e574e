#include "daemon/app/network/record_list.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/strings/escaping.h"
#include "daemon/records/record_content.h"

namespace dfl::app {
namespace {

using control::RecordInfo;
using runtime::RecordBook;

RecordInfo InfoOf(const ports::RecordId& id, const std::string& author,
                  int64_t unix_nanos, const std::string& text, bool current) {
  RecordInfo info;
  info.kind = std::string(records::KindName(id.kind));
  info.subject = id.subject;
  info.counter = id.counter;
  info.author = author;
  info.signed_at = absl::FromUnixNanos(unix_nanos);
  info.summary = text;
  info.current = current;
  info.body_sha256 = absl::BytesToHexString(id.hash);
  return info;
}

}  // namespace

std::vector<RecordInfo> ListOf(const RecordBook& book) {
  std::vector<RecordInfo> list;
  for (const RecordBook::Held& held : book.current()) {
    const runtime::Record& record = *held.record;
    list.push_back(
        InfoOf(record.id, record.author, record.unix_nanos, record.text, true));
  }
  for (const runtime::PastRecord& past : book.history()) {
    list.push_back(
        InfoOf(past.id, past.author, past.unix_nanos, past.text, false));
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const RecordInfo& a, const RecordInfo& b) {
                     return std::tie(a.kind, a.subject, a.counter) <
                            std::tie(b.kind, b.subject, b.counter);
                   });
  return list;
}

}  // namespace dfl::app
