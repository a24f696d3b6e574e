#include "daemon/runtime/gossip/book_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "daemon/base/checksum.h"

namespace dfl::runtime {
namespace {

constexpr absl::string_view kMagic = "dfl-records 1\n";
constexpr char kCurrent = 'C';
constexpr char kHistory = 'H';
constexpr size_t kChecksumBytes = 4;

void PutNumber(uint64_t number, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(number >> (8 * i)));
  }
}

void PutText(absl::string_view text, std::string* out) {
  PutNumber(text.size(), 8, out);
  out->append(text.data(), text.size());
}

// Takes values off the front; after one that is not there, all are empty.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    const absl::string_view digits = Take(bytes);
    for (size_t i = 0; i < digits.size(); ++i) {
      number |= uint64_t{static_cast<unsigned char>(digits[i])} << (8 * i);
    }
    return number;
  }
  absl::string_view Text() { return Take(Number(8)); }
  absl::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) {
      ok_ = false;
      rest_ = {};
    }
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  bool empty() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

std::string EncodePast(const PastRecord& past) {
  std::string out;
  PutNumber(static_cast<uint32_t>(past.id.kind), 4, &out);
  PutText(past.id.subject, &out);
  PutNumber(past.id.counter, 8, &out);
  PutText(past.id.hash, &out);
  PutText(past.author, &out);
  PutNumber(static_cast<uint64_t>(past.unix_nanos), 8, &out);
  PutText(past.text, &out);
  return out;
}

std::optional<PastRecord> DecodePast(absl::string_view bytes) {
  Reader reader(bytes);
  PastRecord past;
  past.id.kind = static_cast<int32_t>(reader.Number(4));
  past.id.subject = std::string(reader.Text());
  past.id.counter = reader.Number(8);
  past.id.hash = std::string(reader.Text());
  past.author = std::string(reader.Text());
  past.unix_nanos = static_cast<int64_t>(reader.Number(8));
  past.text = std::string(reader.Text());
  if (!reader.ok() || !reader.empty()) return std::nullopt;
  return past;
}

void PutItem(char kind, absl::string_view payload, std::string* out) {
  out->push_back(kind);
  PutText(payload, out);
}

}  // namespace

std::string EncodeBook(absl::Span<const absl::string_view> current,
                       absl::Span<const PastRecord> history) {
  std::string out(kMagic);
  for (const absl::string_view record : current) {
    PutItem(kCurrent, record, &out);
  }
  for (const PastRecord& past : history) {
    PutItem(kHistory, EncodePast(past), &out);
  }
  PutNumber(Crc32c(out), kChecksumBytes, &out);
  return out;
}

BookContent DecodeBook(absl::string_view bytes) {
  BookContent content;
  if (!absl::StartsWith(bytes, kMagic)) {
    content.damaged = true;
    return content;
  }
  const size_t checked = std::max(kMagic.size(), bytes.size() - kChecksumBytes);
  content.damaged = Reader(bytes.substr(checked)).Number(kChecksumBytes) !=
                    Crc32c(bytes.substr(0, checked));
  const bool whole = !content.damaged;
  Reader reader(bytes.substr(kMagic.size(), checked - kMagic.size()));
  while (!reader.empty()) {
    const uint64_t kind = reader.Number(1);
    const absl::string_view payload = reader.Text();
    if (!reader.ok()) break;
    if (kind == kCurrent) {
      content.current.emplace_back(payload);
    } else if (kind == kHistory && whole) {
      std::optional<PastRecord> past = DecodePast(payload);
      if (past.has_value()) content.history.push_back(*std::move(past));
    }
  }
  return content;
}

}  // namespace dfl::runtime
