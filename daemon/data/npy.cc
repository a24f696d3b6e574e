// NumPy's NPY and NPZ: an NPZ is a zip archive of NPY arrays.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/half.h"
#include "daemon/base/status_macros.h"
#include "daemon/data/byte_stream.h"
#include "daemon/data/data_error.h"
#include "daemon/data/labels.h"
#include "daemon/data/missing.h"
#include "daemon/data/npy_header.h"
#include "daemon/data/readers.h"
#include "daemon/data/spec_checks.h"
#include "daemon/data/zip.h"

namespace dfl {
namespace data {
namespace {

// One array on its way in: its header, then its values through `stream`.
struct NpyArray {
  std::unique_ptr<ByteStream> stream;
  NpyHeader header;
  uint64_t values = 0;        // in all
  uint64_t values_begin = 0;  // byte offset of the first
  std::string shape_text;
};

absl::StatusOr<NpyArray> OpenArray(const DataSpec& spec,
                                   std::unique_ptr<ByteStream> stream) {
  NpyArray array;
  DFL_ASSIGN_OR_RETURN(array.header, ReadNpyHeader(stream.get()));
  array.shape_text =
      absl::StrCat("(", absl::StrJoin(array.header.shape, ", "), ")");
  array.values_begin = stream->offset();
  DFL_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      CheckedBytes(spec, array.header.shape, array.header.value_bytes,
                   stream->name(), AtByte(10)));
  array.values = bytes / array.header.value_bytes;
  array.stream = std::move(stream);
  return array;
}

template <typename T>
T ValueAt(const char* bytes, bool big_endian) {
  char ordered[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); ++i) {
    ordered[i] = bytes[big_endian ? sizeof(T) - 1 - i : i];
  }
  T value;
  std::memcpy(&value, ordered, sizeof(T));
  return value;
}

// Reads all values and hands the bytes of each to `take(i, bytes)`, a Status.
template <typename Take>
absl::Status ForEachRaw(NpyArray& array, absl::string_view what, Take take) {
  const uint64_t size = array.header.value_bytes;
  const uint64_t block_values = std::max<uint64_t>(1, 65536 / size);
  std::vector<char> block;
  for (uint64_t done = 0; done < array.values;) {
    block.clear();
    const uint64_t step = std::min(block_values, array.values - done);
    DFL_RETURN_IF_ERROR(array.stream->ReadArray(step * size, what, &block));
    for (uint64_t i = 0; i < step; ++i) {
      DFL_RETURN_IF_ERROR(take(done + i, block.data() + i * size));
    }
    done += step;
  }
  return array.stream->ExpectEnd();
}

template <typename T, typename Take>
absl::Status ForEachAs(NpyArray& array, absl::string_view what, Take take) {
  const bool big = array.header.big_endian;
  return ForEachRaw(array, what, [&](uint64_t i, const char* bytes) {
    return take(i, ValueAt<T>(bytes, big));
  });
}

// The values as numbers, to `take(i, value)`.
template <typename Take>
absl::Status ForEach(NpyArray& array, absl::string_view what, Take take) {
  const uint64_t size = array.header.value_bytes;
  switch (array.header.kind) {
    case 'f':
      if (size == 2) {
        return ForEachAs<uint16_t>(array, what, [&](uint64_t i, uint16_t x) {
          return take(i, FloatOfHalf(x));
        });
      }
      return size == 4 ? ForEachAs<float>(array, what, take)
                       : ForEachAs<double>(array, what, take);
    case 'i':
      return size == 1   ? ForEachAs<int8_t>(array, what, take)
             : size == 2 ? ForEachAs<int16_t>(array, what, take)
             : size == 4 ? ForEachAs<int32_t>(array, what, take)
                         : ForEachAs<int64_t>(array, what, take);
    case 'u':
      return size == 1   ? ForEachAs<uint8_t>(array, what, take)
             : size == 2 ? ForEachAs<uint16_t>(array, what, take)
             : size == 4 ? ForEachAs<uint32_t>(array, what, take)
                         : ForEachAs<uint64_t>(array, what, take);
    case 'b':
      return ForEachAs<uint8_t>(array, what, [&](uint64_t i, uint8_t x) {
        return take(i, x != 0 ? 1 : 0);
      });
    default:
      return WrongContent(array.stream->name(), AtByte(10),
                          absl::StrCat(what, " are text"),
                          "numbers; words must be turned into numbers first");
  }
}

// Where values of the file go in memory: rows first, then the row's shape, with
// the channels first.
class Order {
 public:
  Order(const DataSpec& spec, const NpyHeader& header) {
    const std::vector<uint64_t>& shape = header.shape;
    std::vector<size_t> place;  // the axes in memory, slowest first
    for (size_t axis = 0; axis < shape.size(); ++axis) place.push_back(axis);
    if (spec.layout == Layout::kNhwc && shape.size() == 4) {
      place = {0, 3, 1, 2};
    }
    std::vector<uint64_t> strides(shape.size());
    uint64_t stride = 1;
    for (size_t k = place.size(); k-- > 0;) {
      strides[place[k]] = stride;
      stride *= shape[place[k]];
    }
    // The axes as the file runs through them, fastest first.
    for (size_t k = 0; k < shape.size(); ++k) {
      const size_t axis = header.fortran_order ? k : shape.size() - 1 - k;
      axes_.push_back({shape[axis], strides[axis], 0});
    }
    uint64_t expected = 1;
    for (const Axis& axis : axes_) {
      as_it_is_ = as_it_is_ && (axis.stride == expected || axis.extent == 1);
      expected *= axis.extent;
    }
  }

  // Whether every value stays where it is.
  bool as_it_is() const { return as_it_is_; }

  // Where the next value goes.
  uint64_t Next() {
    const uint64_t here = position_;
    for (Axis& axis : axes_) {
      position_ += axis.stride;
      if (++axis.index < axis.extent) break;
      position_ -= axis.stride * axis.extent;
      axis.index = 0;
    }
    return here;
  }

 private:
  struct Axis {
    uint64_t extent;
    uint64_t stride;  // in memory
    uint64_t index;
  };
  std::vector<Axis> axes_;
  bool as_it_is_ = true;
  uint64_t position_ = 0;
};

// Where value i of the file stands; `at` is its place in memory. For people,
// also row and column.
std::string PlaceOf(const NpyArray& array, uint64_t i, uint64_t at) {
  const uint64_t row_size = array.values / array.header.shape[0];
  return absl::StrCat(AtByte(array.values_begin + i * array.header.value_bytes),
                      " (row ", at / row_size, ", column ", at % row_size,
                      ", from 0)");
}

// Whether `what` of `count` values can be there at all; before memory is taken.
absl::Status CheckPresent(const NpyArray& array, absl::string_view what) {
  const uint64_t most = array.stream->max_remaining();
  const uint64_t bytes = array.values * array.header.value_bytes;
  if (bytes <= most) return absl::OkStatus();
  return CutShort(array.stream->name(), AtByte(array.values_begin),
                  absl::StrCat(what, " of shape ", array.shape_text, " take ",
                               bytes, " bytes, but at most ", most, " follow"),
                  "a complete file; copy it again");
}

// Features as float32; NaN stays where the spec says what becomes of it.
absl::StatusOr<std::vector<float>> ReadFloats(const DataSpec& spec,
                                              NpyArray& array) {
  DFL_RETURN_IF_ERROR(CheckPresent(array, "the features"));
  Order order(spec, array.header);
  std::vector<float> out(array.values);
  DFL_RETURN_IF_ERROR(ForEach(
      array, "the features", [&](uint64_t i, auto value) -> absl::Status {
        const uint64_t at = order.Next();
        const double number = static_cast<double>(value);
        if (std::isnan(number)) {
          if (spec.missing == Missing::kRefuse) {
            return WrongContent(array.stream->name(), PlaceOf(array, i, at),
                                "value nan is missing", kMissingCure);
          }
        } else if (!(std::fabs(number) <= std::numeric_limits<float>::max())) {
          return WrongContent(array.stream->name(), PlaceOf(array, i, at),
                              absl::StrCat("value ", number),
                              "finite numbers that fit float32");
        }
        out[at] = static_cast<float>(value);
        return absl::OkStatus();
      }));
  return out;
}

absl::StatusOr<std::vector<uint8_t>> ReadBytes(const DataSpec& spec,
                                               NpyArray& array) {
  Order order(spec, array.header);
  std::vector<uint8_t> out;
  if (order.as_it_is()) {
    DFL_RETURN_IF_ERROR(
        array.stream->ReadArray(array.values, "the features", &out));
    DFL_RETURN_IF_ERROR(array.stream->ExpectEnd());
    return out;
  }
  DFL_RETURN_IF_ERROR(CheckPresent(array, "the features"));
  out.resize(array.values);
  DFL_RETURN_IF_ERROR(
      ForEachAs<uint8_t>(array, "the features", [&](uint64_t, uint8_t value) {
        out[order.Next()] = value;
        return absl::OkStatus();
      }));
  return out;
}

// Whether a row's features were all there; empty: those of every row.
using Kept = std::vector<bool>;
bool IsKept(const Kept& kept, uint64_t row) {
  return kept.empty() || kept[row];
}

// The answer of row i is missing.
absl::Status NoAnswer(const NpyArray& array, uint64_t i,
                      absl::string_view what) {
  return WrongContent(array.stream->name(), PlaceOf(array, i, i),
                      absl::StrCat(what, " nan is missing"),
                      absl::StrCat("a ", what,
                                   " in every row; take these rows out before "
                                   "the file is saved"));
}

absl::StatusOr<std::vector<float>> ReadTargets(NpyArray& array,
                                               const Kept& kept) {
  DFL_RETURN_IF_ERROR(CheckPresent(array, "the targets"));
  std::vector<float> out;
  DFL_RETURN_IF_ERROR(ForEach(
      array, "the targets", [&](uint64_t i, auto value) -> absl::Status {
        if (!IsKept(kept, i)) return absl::OkStatus();
        const double number = static_cast<double>(value);
        if (std::isnan(number)) return NoAnswer(array, i, "target");
        if (!(std::fabs(number) <= std::numeric_limits<float>::max())) {
          return WrongContent(array.stream->name(), PlaceOf(array, i, i),
                              absl::StrCat("value ", number),
                              "finite numbers that fit float32");
        }
        out.push_back(static_cast<float>(value));
        return absl::OkStatus();
      }));
  return out;
}

// A label of text: bytes, or characters of four bytes as UTF-8.
std::string TextOf(const NpyHeader& header, const char* bytes) {
  std::string out;
  if (header.kind == 'S') {
    out.assign(bytes, header.value_bytes);
  } else {
    for (uint64_t i = 0; i < header.value_bytes; i += 4) {
      const uint32_t c = ValueAt<uint32_t>(bytes + i, header.big_endian);
      if (c < 0x80) {
        out.push_back(static_cast<char>(c));
        continue;
      }
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
      out.push_back(static_cast<char>(kLead[more] | (c >> (6 * more) & 0x1F)));
      for (int k = more - 1; k >= 0; --k) {
        out.push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3F)));
      }
    }
  }
  out.erase(out.find_last_not_of('\0') + 1);
  return out;
}

absl::StatusOr<Dataset::Answers> ReadLabels(const DataSpec& spec,
                                            NpyArray& array, const Kept& kept) {
  DFL_RETURN_IF_ERROR(CheckPresent(array, "the labels"));
  LabelCollector collector(spec);
  const std::string& name = array.stream->name();
  if (array.header.kind == 'S' || array.header.kind == 'U') {
    DFL_RETURN_IF_ERROR(
        ForEachRaw(array, "the labels",
                   [&](uint64_t i, const char* bytes) -> absl::Status {
                     if (!IsKept(kept, i)) return absl::OkStatus();
                     return collector.Add(TextOf(array.header, bytes), name,
                                          [&] { return PlaceOf(array, i, i); });
                   }));
    return collector.Finish();
  }
  DFL_RETURN_IF_ERROR(
      ForEach(array, "the labels", [&](uint64_t i, auto value) -> absl::Status {
        if (!IsKept(kept, i)) return absl::OkStatus();
        std::string spelling;
        if constexpr (std::is_floating_point_v<decltype(value)>) {
          const double number = static_cast<double>(value);
          if (std::isnan(number)) return NoAnswer(array, i, "label");
          if (number != std::floor(number) || std::fabs(number) > 1e15) {
            return WrongContent(
                name, PlaceOf(array, i, i), absl::StrCat("label ", number),
                "integers; data.task: regression if these are numbers to be "
                "predicted");
          }
          spelling = absl::StrCat(static_cast<int64_t>(number));
        } else {
          spelling = absl::StrCat(+value);
        }
        return collector.Add(spelling, name,
                             [&] { return PlaceOf(array, i, i); });
      }));
  return collector.Finish();
}

absl::Status CheckShapes(const NpyArray& x, const NpyArray& y) {
  const std::vector<uint64_t>& x_shape = x.header.shape;
  const std::vector<uint64_t>& y_shape = y.header.shape;
  if (x_shape.size() < 2) {
    return WrongContent(
        x.stream->name(), AtByte(10),
        absl::StrCat("features of shape ", x.shape_text),
        "(rows, features) or (rows, ...); X.reshape(-1, 1) makes rows of one "
        "feature");
  }
  const bool fits =
      (y_shape.size() == 1 || (y_shape.size() == 2 && y_shape[1] == 1)) &&
      y_shape[0] == x_shape[0];
  if (fits) return absl::OkStatus();
  return WrongContent(
      y.stream->name(), AtByte(10),
      absl::StrCat("labels of shape ", y.shape_text),
      absl::StrCat("(", x_shape[0], ") for features ", x.shape_text,
                   y_shape.size() == 2 && y_shape[0] == x_shape[0]
                       ? "; y.argmax(axis=1) makes class numbers of columns"
                       : ""));
}

absl::StatusOr<Dataset> Join(const DataSpec& spec, NpyArray x, NpyArray y) {
  DFL_RETURN_IF_ERROR(CheckShapes(x, y));
  const std::string& x_name = x.stream->name();
  const std::vector<uint64_t>& x_shape = x.header.shape;
  DFL_RETURN_IF_ERROR(
      CheckRows(spec, static_cast<int64_t>(x_shape[0]), x_name, AtByte(10)));
  std::vector<int64_t> natural;
  if (x_shape.size() == 3) natural.push_back(1);
  for (size_t i = 1; i < x_shape.size(); ++i) {
    natural.push_back(static_cast<int64_t>(x_shape[i]));
  }
  if (x_shape.size() == 4) {
    DFL_ASSIGN_OR_RETURN(natural,
                         ChannelsFirst(spec, natural, x_name, AtByte(10)));
  }
  DFL_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                       ResolveShape(spec, natural, x_name, AtByte(10)));
  const bool are_bytes = x.header.kind == 'u' && x.header.value_bytes == 1;
  std::vector<uint8_t> bytes;
  std::vector<float> floats;
  Dataset::Columns columns;
  Kept kept;
  if (are_bytes) {
    DFL_ASSIGN_OR_RETURN(bytes, ReadBytes(spec, x));
  } else {
    // Held as float32, whatever the file's type.
    DFL_RETURN_IF_ERROR(
        CheckedBytes(spec, x_shape, sizeof(float), x_name, AtByte(10))
            .status());
    DFL_ASSIGN_OR_RETURN(floats, ReadFloats(spec, x));
    const auto d =
        static_cast<int64_t>(x.values / static_cast<uint64_t>(x_shape[0]));
    if (spec.missing == Missing::kDrop) {
      kept = DropMissing(d, &floats, &columns);
      if (floats.empty()) {
        return WrongContent(x_name, AtByte(10),
                            "every row has a missing value and is dropped",
                            "data.missing: mean or zero");
      }
    } else if (spec.missing != Missing::kRefuse) {
      DFL_RETURN_IF_ERROR(
          FillMissing(spec, d, x_name, absl::MakeSpan(floats), &columns));
    }
  }
  Dataset::Answers answers;
  if (spec.task == Task::kRegression) {
    DFL_ASSIGN_OR_RETURN(answers.targets, ReadTargets(y, kept));
  } else {
    DFL_ASSIGN_OR_RETURN(answers, ReadLabels(spec, y, kept));
  }
  if (are_bytes) {
    return Dataset(std::move(shape), std::move(bytes), std::move(answers),
                   std::move(columns));
  }
  return Dataset(std::move(shape), std::move(floats), std::move(answers),
                 std::move(columns));
}

}  // namespace

absl::StatusOr<Dataset> ReadNpy(const DataSpec& spec) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> x_stream,
                       ByteStream::Open(spec.paths[0]));
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> y_stream,
                       ByteStream::Open(spec.paths[1]));
  DFL_ASSIGN_OR_RETURN(NpyArray x, OpenArray(spec, std::move(x_stream)));
  DFL_ASSIGN_OR_RETURN(NpyArray y, OpenArray(spec, std::move(y_stream)));
  return Join(spec, std::move(x), std::move(y));
}

absl::StatusOr<Dataset> ReadNpz(const DataSpec& spec) {
  DFL_ASSIGN_OR_RETURN(const ZipArchive archive,
                       ZipArchive::Open(spec.paths[0]));
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteStream> x_stream,
      archive.OpenMember(absl::StrCat(spec.features_key, ".npy")));
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteStream> y_stream,
      archive.OpenMember(absl::StrCat(spec.labels_key, ".npy")));
  DFL_ASSIGN_OR_RETURN(NpyArray x, OpenArray(spec, std::move(x_stream)));
  DFL_ASSIGN_OR_RETURN(NpyArray y, OpenArray(spec, std::move(y_stream)));
  return Join(spec, std::move(x), std::move(y));
}

}  // namespace data
}  // namespace dfl
