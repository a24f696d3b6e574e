#include "daemon/codec/small_integers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace dfl::codec {
namespace {

constexpr int64_t kSegment = 65536;
constexpr int kStates = 4;
constexpr int64_t kFewValues = 4096;  // below it one state will do

constexpr int kTotalBits = 12;
constexpr uint32_t kTotal = 1U << kTotalBits;
constexpr uint32_t kLeastState = 1U << 15;
constexpr uint32_t kStateEnd = 1U << 31;

constexpr int kWidths = 37;
constexpr int kMostReach = 126;  // so that a symbol is a byte

int StatesOf(int64_t count) { return count < kFewValues ? 1 : kStates; }

// ----------------------------------------------------------------- tables ----

enum class Shape { kNormal = 0, kExponential = 1 };

struct TableName {
  int width = 0;
  Shape shape = Shape::kNormal;
  Centre centre = Centre::kZero;
};

uint8_t ByteOf(const TableName& name) {
  return static_cast<uint8_t>(name.width | static_cast<int>(name.shape) << 6 |
                              static_cast<int>(name.centre) << 7);
}

struct Table {
  int lo = 0;
  int symbols = 0;                   // without the escape, which is the last
  std::array<uint16_t, 256> counts;  // of kTotal
  std::array<uint16_t, 257> starts;

  bool Has(int value) const { return value >= lo && value < lo + symbols; }
};

// exp(-2^(1 - j/2)), and exp(-2^(3/2 - j/4)): the weight's factor for (2q -
// 2c)^2, and for |2q - 2c|. Each is the root of an earlier one.
double Factor(const TableName& name) {
  constexpr std::array<double, 2> kNormal = {0x1.152aaa3bf81ccp-3,
                                             0x1.f1e72fbc0ac97p-3};
  constexpr std::array<double, 4> kExponential = {
      0x1.e431bc0fa8121p-5, 0x1.7bb0545f6b0fbp-4, 0x1.152aaa3bf81ccp-3,
      0x1.7d029cb29ac3bp-3};
  const bool normal = name.shape == Shape::kNormal;
  const int seeds = normal ? 2 : 4;
  double factor =
      normal ? kNormal[name.width % 2] : kExponential[name.width % 4];
  for (int j = name.width; j >= seeds; j -= seeds) factor = std::sqrt(factor);
  return factor;
}

// How far from the centre a table goes: 4 s, and 8 s, where the rest is rare.
int ReachOf(const TableName& name) {
  double reach = name.shape == Shape::kNormal ? 4 : 8;
  reach /= 4;                                           // s = 2^-2
  for (int j = name.width; j >= 4; j -= 4) reach *= 2;  // 2^(j/4), rounded down
  return static_cast<int>(std::min<double>(kMostReach, 2 * reach + 1));
}

// The weights of the distances 0 (or 1/2), 1, 2, ... up to `reach`.
std::array<double, 256> WeightsOf(const TableName& name, int reach) {
  const double factor = Factor(name);
  const bool half = name.centre == Centre::kMinusHalf;
  std::array<double, 256> weights = {};
  // Twice the distance is m = 0, 2, 4, ..., or 1, 3, 5, ...
  double weight = half ? factor : 1;
  double ratio = factor * factor;  // from m to m + 2
  double growth = 1;               // of that
  if (name.shape == Shape::kNormal) {
    const double fourth = ratio * ratio;  // factor^(2^2 - 0^2)
    growth = fourth * fourth;             // factor^(3^2 - 1^2), and so on
    ratio = half ? growth : fourth;
  }
  for (int distance = 0; distance <= reach; ++distance) {
    weights[distance] = weight;
    weight *= ratio;
    ratio *= growth;
  }
  return weights;
}

Table MakeTable(const TableName& name) {
  const int reach = ReachOf(name);
  const std::array<double, 256> weights = WeightsOf(name, reach);
  const int half = name.centre == Centre::kMinusHalf ? 1 : 0;
  Table table;
  table.lo = -reach - half;
  table.symbols = 2 * reach + 1 + half;
  const auto weight_of = [&](int symbol) {
    const int value = table.lo + symbol;
    return weights[value < 0 ? -value - half : value];
  };
  double sum = 0;
  for (int s = 0; s < table.symbols; ++s) sum += weight_of(s);
  // Each symbol and the escape have 1; the rest goes by weight, and what
  // rounding leaves to the middle.
  const auto spread = static_cast<double>(kTotal) - table.symbols - 1;
  int left = static_cast<int>(kTotal) - table.symbols - 1;
  for (int s = 0; s < table.symbols; ++s) {
    const int more = static_cast<int>(weight_of(s) / sum * spread);
    table.counts[s] = static_cast<uint16_t>(1 + more);
    left -= more;
  }
  table.counts[-table.lo] =
      static_cast<uint16_t>(table.counts[-table.lo] + left);
  table.counts[table.symbols] = 1;
  table.starts[0] = 0;
  for (int s = 0; s <= table.symbols; ++s) {
    table.starts[s + 1] =
        static_cast<uint16_t>(table.starts[s] + table.counts[s]);
  }
  return table;
}

// ------------------------------------------------------------- the choice ----

// 256 (12 - log2(count)), rounded down: the bits of a symbol.
int64_t CostOf(uint32_t count) {
  int whole = 0;
  while ((count >> (whole + 1)) != 0) ++whole;
  uint64_t x = static_cast<uint64_t>(count) << (31 - whole);  // [2^31, 2^32)
  int fraction = 0;
  for (int bit = 0; bit < 8; ++bit) {
    x = x * x >> 31;
    fraction *= 2;
    if (x >= uint64_t{1} << 32) {
      x >>= 1;
      ++fraction;
    }
  }
  return 256 * (kTotalBits - whole) - fraction;
}

constexpr int kCounted = 2 * kMostReach + 2;  // values from -127 to 126

struct Histogram {
  std::array<int64_t, kCounted> counts = {};
  int64_t others = 0;
};

int64_t CostOf(const Histogram& histogram, const Table& table) {
  const int64_t escape = CostOf(1) + 256 * 16;
  int64_t cost = histogram.others * escape;
  for (int i = 0; i < kCounted; ++i) {
    if (histogram.counts[i] == 0) continue;
    const int value = i - kMostReach - 1;
    cost +=
        histogram.counts[i] *
        (table.Has(value) ? CostOf(table.counts[value - table.lo]) : escape);
  }
  return cost;
}

// The width nearest to the values' own, and some below it: a few large values
// make it look wide.
TableName Choose(absl::Span<const int16_t> values, Centre centre) {
  Histogram histogram;
  double squares = 0;  // of 2 (q - c)
  const int half = centre == Centre::kMinusHalf ? 1 : 0;
  for (const int16_t value : values) {
    const int i = value + kMostReach + 1;
    if (i >= 0 && i < kCounted) {
      ++histogram.counts[i];
    } else {
      ++histogram.others;
    }
    const double twice = 2 * value + half;
    squares += twice * twice;
  }
  const double s2 = squares / (4 * static_cast<double>(values.size()));
  int width = 0;
  for (double at = 0x1p-4; width + 1 < kWidths && at * 1.2 < s2; ++width) {
    at *= std::sqrt(2.0);
  }
  TableName best;
  int64_t least = -1;
  for (const Shape shape : {Shape::kNormal, Shape::kExponential}) {
    for (int j = std::max(0, width - 5); j <= std::min(kWidths - 1, width + 1);
         ++j) {
      const TableName name = {j, shape, centre};
      const int64_t cost = CostOf(histogram, MakeTable(name));
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best = name;
    }
  }
  return best;
}

// ---------------------------------------------------------------- writing ----

// A symbol with its division as a multiplication: x / count for x < 2^31.
struct Coder {
  uint32_t most = 0;  // from here on a word goes out first
  uint32_t reciprocal = 0;
  uint32_t bias = 0;
  uint16_t rest = 0;  // kTotal - count
  uint16_t shift = 0;
};

Coder CoderOf(uint32_t start, uint32_t count) {
  Coder coder;
  coder.most = count << (31 - kTotalBits);
  coder.rest = static_cast<uint16_t>(kTotal - count);
  if (count < 2) {
    coder.reciprocal = ~0U;  // x - 1
    coder.bias = start + kTotal - 1;
    return coder;
  }
  int shift = 0;
  while (count > (1U << shift)) ++shift;
  coder.reciprocal = static_cast<uint32_t>(
      ((uint64_t{1} << (shift + 31)) + count - 1) / count);
  coder.shift = static_cast<uint16_t>(shift - 1);
  coder.bias = start;
  return coder;
}

template <typename T>
void Append(T value, std::string* bytes) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

// Words are made from the last to the first; `words` has room for one a value.
void EncodeSegment(absl::Span<const int16_t> values, Centre centre,
                   std::vector<uint16_t>* words, std::string* bytes) {
  const TableName name = Choose(values, centre);
  const Table table = MakeTable(name);
  std::array<Coder, 256> coders;
  for (int s = 0; s <= table.symbols; ++s) {
    coders[s] = CoderOf(table.starts[s], table.counts[s]);
  }
  const int states = StatesOf(static_cast<int64_t>(values.size()));
  std::array<uint32_t, kStates> state;
  state.fill(kLeastState);
  uint16_t* const end = words->data() + words->size();
  uint16_t* word = end;
  const auto mask = static_cast<size_t>(states - 1);
  for (size_t i = values.size(); i-- > 0;) {
    const int value = values[i];
    const Coder& coder =
        coders[table.Has(value) ? value - table.lo : table.symbols];
    uint32_t x = state[i & mask];
    // Written in any case, kept if it is due: no branch.
    word[-1] = static_cast<uint16_t>(x);
    const uint32_t due = x >= coder.most ? 1 : 0;
    word -= due;
    x >>= 16 * due;
    const auto quotient =
        static_cast<uint32_t>((static_cast<uint64_t>(x) * coder.reciprocal) >>
                              32) >>
        coder.shift;
    state[i & mask] = x + coder.bias + quotient * coder.rest;
  }
  bytes->push_back(static_cast<char>(ByteOf(name)));
  for (int s = 0; s < states; ++s) Append(state[s], bytes);
  bytes->append(reinterpret_cast<const char*>(word),
                static_cast<size_t>(end - word) * 2);
  for (const int16_t value : values) {
    if (!table.Has(value)) Append(value, bytes);
  }
}

// ---------------------------------------------------------------- reading ----

template <typename T>
T Load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

absl::Status Malformed(int64_t first, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the coded integers from ",
                                                 first, " on ", what,
                                                 "; no encoder writes this"));
}

// Per slot: symbol in bits 0-7, count - 1 in 8-19, place in the symbol in
// 20-31.
std::vector<uint32_t> SlotsOf(const Table& table) {
  std::vector<uint32_t> slots(kTotal);
  for (int s = 0; s <= table.symbols; ++s) {
    for (uint32_t place = 0; place < table.counts[s]; ++place) {
      slots[table.starts[s] + place] =
          static_cast<uint32_t>(s) |
          (static_cast<uint32_t>(table.counts[s]) - 1) << 8 | place << 20;
    }
  }
  return slots;
}

// Decodes one segment from the front of `bytes`, whose first value is the
// `first`-th.
absl::Status DecodeSegment(int64_t first, absl::string_view* bytes,
                           absl::Span<int16_t> out) {
  const int states = StatesOf(static_cast<int64_t>(out.size()));
  const auto head = static_cast<size_t>(1 + 4 * states);
  if (bytes->size() < head) return Malformed(first, "end too early");
  const auto byte = static_cast<uint8_t>(bytes->front());
  if ((byte & 63) >= kWidths) return Malformed(first, "name no table");
  const Table table = MakeTable({byte & 63, static_cast<Shape>(byte >> 6 & 1),
                                 static_cast<Centre>(byte >> 7)});
  const std::vector<uint32_t> slots = SlotsOf(table);
  std::array<uint32_t, kStates> state;
  state.fill(kLeastState);
  for (int s = 0; s < states; ++s) {
    state[s] = Load<uint32_t>(bytes->data() + 1 + 4 * s);
    if (state[s] < kLeastState || state[s] >= kStateEnd) {
      return Malformed(first, "begin with a state out of range");
    }
  }
  const char* at = bytes->data() + head;
  const char* const end = bytes->data() + bytes->size();
  const auto mask = static_cast<size_t>(states - 1);
  std::vector<size_t> escapes;
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t x = state[i & mask];
    const uint32_t slot = slots[x & (kTotal - 1)];
    const auto symbol = static_cast<int>(slot & 255);
    x = ((slot >> 8 & (kTotal - 1)) + 1) * (x >> kTotalBits) + (slot >> 20);
    if (x < kLeastState) {
      if (end - at < 2) return Malformed(first, "end too early");
      x = x << 16 | Load<uint16_t>(at);
      at += 2;
    }
    state[i & mask] = x;
    out[i] = static_cast<int16_t>(table.lo + symbol);
    if (symbol == table.symbols) escapes.push_back(i);
  }
  for (const uint32_t x : state) {
    if (x != kLeastState) return Malformed(first, "do not end as they began");
  }
  if (static_cast<size_t>(end - at) < 2 * escapes.size()) {
    return Malformed(first, "end too early");
  }
  for (const size_t i : escapes) {
    out[i] = Load<int16_t>(at);
    at += 2;
    if (table.Has(out[i])) return Malformed(first, "escape without need");
  }
  bytes->remove_prefix(static_cast<size_t>(at - bytes->data()));
  return absl::OkStatus();
}

// Calls segment(first, count) for each.
template <typename Segment>
void ForEachSegment(int64_t count, Segment segment) {
  for (int64_t first = 0; first < count; first += kSegment) {
    segment(first, std::min(kSegment, count - first));
  }
}

int64_t HeadBytes(int64_t count) {
  int64_t bytes = 0;
  ForEachSegment(count, [&](int64_t, int64_t values) {
    bytes += 1 + 4 * StatesOf(values);
  });
  return bytes;
}

}  // namespace

int64_t LeastSmallIntegerBytes(int64_t count) { return HeadBytes(count); }

// A word and an escape for each value.
int64_t MostSmallIntegerBytes(int64_t count) {
  return HeadBytes(count) + 4 * count;
}

std::string EncodeSmallIntegers(absl::Span<const int16_t> values,
                                Centre centre) {
  std::string bytes;
  const auto count = static_cast<int64_t>(values.size());
  // One more, since a word is written before it is known to be due.
  std::vector<uint16_t> words(static_cast<size_t>(std::min(count, kSegment)) +
                              1);
  ForEachSegment(count, [&](int64_t first, int64_t of_segment) {
    EncodeSegment(values.subspan(static_cast<size_t>(first),
                                 static_cast<size_t>(of_segment)),
                  centre, &words, &bytes);
  });
  return bytes;
}

absl::Status DecodeSmallIntegers(absl::string_view bytes,
                                 absl::Span<int16_t> out) {
  absl::Status status;
  const auto count = static_cast<int64_t>(out.size());
  ForEachSegment(count, [&](int64_t first, int64_t of_segment) {
    if (!status.ok()) return;
    status = DecodeSegment(first, &bytes,
                           out.subspan(static_cast<size_t>(first),
                                       static_cast<size_t>(of_segment)));
  });
  if (!status.ok()) return status;
  if (bytes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      bytes.size(), " bytes follow the last of ", count, " coded integers"));
}

}  // namespace dfl::codec
