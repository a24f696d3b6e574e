#include "daemon/core/algorithm/algorithm_state.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/checksum.h"
#include "daemon/base/status_macros.h"

namespace dfl::core {
namespace {

static_assert(std::endian::native == std::endian::little,
              "states load and store little-endian numbers in place");

constexpr absl::string_view kMagic = "DFLA";
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kLengthAt = kVersionAt + sizeof(uint32_t);
constexpr size_t kBodyAt = kLengthAt + sizeof(uint64_t);
constexpr size_t kChecksumBytes = sizeof(uint32_t);

// ---------------------------------------------------------------- writing ----

// Hands bytes on, piece by piece, and counts and checks them.
class Out {
 public:
  explicit Out(const StateSink& sink) : sink_(sink) {}

  void Append(absl::string_view piece) {
    length_ += piece.size();
    if (!sink_) return;  // it only counts
    checksum_ = ExtendCrc32c(checksum_, piece);
    sink_(piece);
  }
  template <typename T>
  void Number(T number) {
    char raw[sizeof(T)];
    std::memcpy(raw, &number, sizeof(T));
    Append(absl::string_view(raw, sizeof(T)));
  }
  void Text(absl::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    Append(text);
  }
  template <typename V>
  void Entries(const V& entries) {
    if (entries.empty()) return;
    Append(absl::string_view(reinterpret_cast<const char*>(entries.data()),
                             entries.size() * sizeof(entries[0])));
  }

  uint64_t length() const { return length_; }
  uint32_t checksum() const { return checksum_; }

 private:
  const StateSink& sink_;
  uint64_t length_ = 0;
  uint32_t checksum_ = Crc32c("");
};

struct Writer {
  Out& out;

  void operator()(int64_t number) { out.Number(number); }
  void operator()(double number) { out.Number(number); }
  void operator()(const std::string& text) { out.Text(text); }
  void operator()(const FlatVector& vector) {
    out.Number(static_cast<uint64_t>(vector.size()));
    out.Entries(vector);
  }
  void operator()(const std::vector<double>& list) {
    out.Number(static_cast<uint32_t>(list.size()));
    out.Entries(list);
  }
  void operator()(const std::vector<std::string>& list) {
    out.Number(static_cast<uint32_t>(list.size()));
    for (const std::string& text : list) out.Text(text);
  }
};

// All but the checksum.
void Write(const AlgorithmState& state, uint64_t length, Out& out) {
  out.Append(kMagic);
  out.Number(state.version);
  out.Number(length);
  out.Text(state.algorithm);
  out.Number(static_cast<uint32_t>(state.fields.size()));
  for (const auto& [name, value] : state.fields) {
    out.Text(name);
    out.Number(static_cast<uint8_t>(value.index()));
    std::visit(Writer{out}, value);
  }
}

// ---------------------------------------------------------------- reading ----

template <typename T>
T NumberAt(absl::string_view bytes, size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

// Reads from the front of what is left; what is not there is an error that
// stays.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : left_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }
  size_t left() const { return left_.size(); }

  template <typename T>
  T Number() {
    const absl::string_view raw = Take(sizeof(T));
    return ok_ ? NumberAt<T>(raw, 0) : T();
  }
  std::string Text() { return std::string(Take(Number<uint32_t>())); }
  template <typename V, typename Length>
  V Entries() {
    V entries;
    const uint64_t length = Number<Length>();
    if (length > left_.size() / sizeof(entries[0])) ok_ = false;
    if (!ok_ || length == 0) return entries;
    const absl::string_view raw = Take(length * sizeof(entries[0]));
    entries.resize(length);
    std::memcpy(entries.data(), raw.data(), raw.size());
    return entries;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    const auto length = Number<uint32_t>();
    for (uint32_t i = 0; i < length && ok_; ++i) texts.push_back(Text());
    return texts;
  }
  // `type` is the place in StateValue.
  StateValue Value(uint8_t type) {
    switch (type) {
      case 0:
        return Number<int64_t>();
      case 1:
        return Number<double>();
      case 2:
        return Text();
      case 3:
        return Entries<FlatVector, uint64_t>();
      case 4:
        return Entries<std::vector<double>, uint32_t>();
      case 5:
        return Texts();
      default:
        ok_ = false;
        return int64_t{0};
    }
  }

 private:
  absl::string_view Take(size_t count) {
    if (count > left_.size()) ok_ = false;
    if (!ok_) return {};
    const absl::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  absl::string_view left_;
  bool ok_ = true;
};

static_assert(std::variant_size_v<StateValue> == 6, "Reader::Value knows 6");

// What can be told before the fields are looked at.
absl::Status CheckWhole(absl::string_view bytes) {
  if (bytes.size() < kBodyAt + kChecksumBytes ||
      bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError(
        absl::StrCat("an algorithm's state: ", bytes.size(),
                     " bytes that are none; allowed: one begins with \"",
                     kMagic, "\" and has at least ", kBodyAt + kChecksumBytes));
  }
  const auto length = NumberAt<uint64_t>(bytes, kLengthAt);
  if (length != bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("an algorithm's state: ", bytes.size(),
                     " bytes are here, it says that it has ", length));
  }
  const size_t checked = bytes.size() - kChecksumBytes;
  if (Crc32c(bytes.substr(0, checked)) != NumberAt<uint32_t>(bytes, checked)) {
    return absl::DataLossError("an algorithm's state: its checksum is wrong");
  }
  const auto version = NumberAt<uint32_t>(bytes, kVersionAt);
  if (version != kAlgorithmStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("an algorithm's state: version ", version,
                     "; allowed: ", kAlgorithmStateVersion));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t SerializedLength(const AlgorithmState& state) {
  const StateSink nothing;
  Out count(nothing);
  Write(state, 0, count);
  return count.length() + kChecksumBytes;
}

void SerializeState(const AlgorithmState& state, const StateSink& sink) {
  Out out(sink);
  Write(state, SerializedLength(state), out);
  out.Number(out.checksum());
}

std::string SerializeState(const AlgorithmState& state) {
  std::string bytes;
  bytes.reserve(SerializedLength(state));
  SerializeState(state, [&bytes](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
  });
  return bytes;
}

absl::StatusOr<AlgorithmState> ParseState(absl::string_view bytes) {
  DFL_RETURN_IF_ERROR(CheckWhole(bytes));
  Reader reader(bytes.substr(kBodyAt, bytes.size() - kBodyAt - kChecksumBytes));
  AlgorithmState state;
  state.algorithm = reader.Text();
  const auto count = reader.Number<uint32_t>();
  std::string before;
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    std::string name = reader.Text();
    StateValue value = reader.Value(reader.Number<uint8_t>());
    if (!reader.ok() || (i > 0 && name <= before)) {
      return absl::DataLossError(
          absl::StrCat("an algorithm's state: field ", i + 1, " of ", count,
                       " is torn, unknown or out of order"));
    }
    before = name;
    state.fields.emplace(std::move(name), std::move(value));
  }
  if (!reader.ok() || !reader.at_end()) {
    return absl::DataLossError(absl::StrCat("an algorithm's state: ", count,
                                            " fields leave ", reader.left(),
                                            " bytes"));
  }
  return state;
}

}  // namespace dfl::core
