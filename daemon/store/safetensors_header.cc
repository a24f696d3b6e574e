#include "daemon/store/safetensors_header.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/one_line.h"
#include "daemon/base/status_macros.h"
#include "daemon/base/utf8.h"
#include "daemon/core/contract/shape.h"
#include "nlohmann/json.hpp"

namespace dfl::store {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr char kDtype[] = "dtype";
constexpr char kShape[] = "shape";
constexpr char kOffsets[] = "data_offsets";
constexpr char kDtypes[] =
    "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL";

// Bytes of a tensor; false: more than 2^63.
bool BytesOf(const FileTensor& tensor, uint64_t& bytes) {
  bytes = DtypeBytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    const auto factor = static_cast<uint64_t>(extent);
    if (factor != 0 &&
        bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) /
                    factor) {
      return false;
    }
    bytes *= factor;
  }
  return true;
}

// Takes the header's JSON as it is parsed: nothing is kept but tensors and
// metadata, and the first thing that does not belong ends the parsing. Time and
// memory are linear in the text, but for the look-up of names.
class HeaderParser final : public nlohmann::json_sax<json> {
 public:
  absl::StatusOr<SafetensorsHeader> Parse(absl::string_view text) {
    try {
      const bool parsed = json::sax_parse(text.begin(), text.end(), this);
      if (!parsed) return SafetensorsError(wrong_);
    } catch (const std::exception& error) {
      return SafetensorsError(NotJson(error.what()));
    }
    return std::move(header_);
  }

  bool null() override { return Misplaced(); }
  bool boolean(bool /*value*/) override { return Misplaced(); }
  bool number_integer(number_integer_t /*value*/) override {
    return Misplaced();
  }
  bool number_float(number_float_t /*value*/,
                    const string_t& /*text*/) override {
    return Misplaced();
  }
  bool binary(binary_t& /*value*/) override { return Misplaced(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (value >= uint64_t{1} << 63) return Misplaced();
    if (place_ == Place::kShape) {
      if (tensor_.shape.size() == kMaxFileDimensions) {
        return Wrong("its shape has more than ", kMaxFileDimensions,
                     " dimensions");
      }
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ != Place::kOffsets || offsets_ == 2) return Misplaced();
    (offsets_++ == 0 ? tensor_.begin : tensor_.end) = value;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::kTensor || key_ != kDtype) return Misplaced();
    if (DtypeBytes(value) == 0) {
      return Wrong("dtype ", QuotedName(value),
                   " is unknown; allowed: ", kDtypes,
                   "; convert the tensor or leave it out");
    }
    tensor_.dtype = std::move(value);
    return true;
  }

  bool start_object(size_t /*size*/) override {
    if (place_ == Place::kBeforeHeader) {
      place_ = Place::kHeader;
      return true;
    }
    if (place_ != Place::kHeader) return Misplaced();
    place_ = name_ == kMetadata ? Place::kMetadata : Place::kTensor;
    tensor_ = FileTensor();
    tensor_.name = name_;
    fields_.clear();
    offsets_ = 0;
    return true;
  }

  bool key(string_t& key) override {
    if (place_ == Place::kHeader) {
      name_ = std::move(key);
      if (!names_.insert(name_).second) return Twice(name_);
      return names_.size() <= kMaxFileTensors ||
             Refuse("the header has more than ", kMaxFileTensors, " entries");
    }
    key_ = std::move(key);
    if (place_ == Place::kMetadata) {
      if (header_.metadata.count(key_) > 0) return Twice(key_);
      return header_.metadata.size() < kMaxMetadataEntries ||
             Refuse("__metadata__ has more than ", kMaxMetadataEntries,
                    " entries");
    }
    if (key_ != kDtype && key_ != kShape && key_ != kOffsets) {
      return Wrong("unknown field ", QuotedName(key_),
                   "; allowed: dtype, shape, data_offsets");
    }
    return fields_.insert(key_).second || Twice(key_);
  }

  bool start_array(size_t /*size*/) override {
    if (place_ != Place::kTensor || key_ == kDtype) return Misplaced();
    place_ = key_ == kShape ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_ != 2) return Misplaced();
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = Place::kHeader;
    return true;
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const json::exception& error) override {
    return Refuse(NotJson(error.what()));
  }

 private:
  enum class Place {
    kBeforeHeader,
    kHeader,    // the value of name_ comes next
    kMetadata,  // the value of key_
    kTensor,    // the value of key_
    kShape,
    kOffsets,
  };

  template <typename... Parts>
  bool Refuse(const Parts&... parts) {
    wrong_ = absl::StrCat(parts...);
    return false;
  }
  template <typename... Parts>
  bool Wrong(const Parts&... parts) {
    return Refuse(QuotedName(name_), ": ", parts...);
  }
  bool Twice(absl::string_view name) {
    return Refuse(QuotedName(name), " comes twice in the header");
  }
  // A value that may not stand where it does.
  bool Misplaced() {
    switch (place_) {
      case Place::kBeforeHeader:
        return Refuse("the header is no JSON object");
      case Place::kHeader:
        return name_ == kMetadata ? Refuse("__metadata__ is no JSON object")
                                  : Wrong("its entry is no JSON object");
      case Place::kMetadata:
        return Refuse("__metadata__: ", QuotedName(key_), " is no text");
      case Place::kTensor:
      case Place::kShape:
      case Place::kOffsets:
        break;
    }
    return Lacks(key_);
  }
  // The field `key` is missing or of another kind.
  bool Lacks(absl::string_view key) {
    if (key == kDtype) {
      return Wrong("dtype missing or no text; allowed: ", kDtypes);
    }
    return key == kShape
               ? Wrong("its shape is missing or no list of integers")
               : Wrong("data_offsets are not two integers of at least 0");
  }
  bool FinishTensor() {
    for (const char* key : {kDtype, kShape, kOffsets}) {
      if (fields_.count(key) == 0) return Lacks(key);
    }
    uint64_t bytes = 0;
    if (!BytesOf(tensor_, bytes) || tensor_.end < tensor_.begin ||
        tensor_.end - tensor_.begin != bytes) {
      return Wrong("data_offsets [", tensor_.begin, ", ", tensor_.end,
                   "] do not span its shape ", core::ShapeText(tensor_.shape),
                   " of ", tensor_.dtype);
    }
    header_.tensors.push_back(std::move(tensor_));
    return true;
  }
  // The parser quotes what it read last, which may be long.
  static std::string NotJson(absl::string_view error) {
    constexpr size_t kShown = 300;
    return absl::StrCat(
        "the header is no JSON: ", OneLine(StartOf(error, kShown)),
        error.size() > kShown ? "..." : "");
  }

  SafetensorsHeader header_;
  Place place_ = Place::kBeforeHeader;
  std::set<std::string> names_;   // of the header
  std::string name_;              // the last of them
  std::string key_;               // the last within its entry
  FileTensor tensor_;             // being read
  std::set<std::string> fields_;  // that it has so far
  int offsets_ = 0;               // numbers of data_offsets so far
  std::string wrong_;
};

// Sorts the tensors by their places, which must follow one another.
absl::Status Order(SafetensorsHeader& header) {
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const FileTensor& a, const FileTensor& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  for (const FileTensor& tensor : header.tensors) {
    if (tensor.begin != header.data_bytes) {
      return SafetensorsError(absl::StrCat(
          QuotedName(tensor.name), ": data_offsets [", tensor.begin, ", ",
          tensor.end, "] ",
          tensor.begin < header.data_bytes ? "overlap another tensor's"
                                           : "leave a gap before them",
          "; allowed here: ", header.data_bytes));
    }
    header.data_bytes = tensor.end;
  }
  return absl::OkStatus();
}

}  // namespace

size_t DtypeBytes(absl::string_view dtype) {
  static const std::map<std::string, size_t, std::less<>> kKnown = {
      {"F64", 8}, {"I64", 8},     {"U64", 8},     {"F32", 4},  {"I32", 4},
      {"U32", 4}, {"F16", 2},     {"BF16", 2},    {"I16", 2},  {"U16", 2},
      {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"BOOL", 1}, {"U8", 1},
  };
  const auto found = kKnown.find(dtype);
  return found == kKnown.end() ? 0 : found->second;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view text) {
  DFL_ASSIGN_OR_RETURN(SafetensorsHeader header, HeaderParser().Parse(text));
  DFL_RETURN_IF_ERROR(Order(header));
  return header;
}

absl::Status SafetensorsError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", what));
}

std::string QuotedName(absl::string_view name) {
  constexpr size_t kShown = 80;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(StartOf(name, kShown)),
                      name.size() > kShown ? "...\"" : "\"");
}

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(kShown, names.size());
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<long>(shown), ", ");
  if (shown < names.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

}  // namespace dfl::store
