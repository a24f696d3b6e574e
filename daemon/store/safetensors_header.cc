#include "daemon/store/safetensors_header.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/contract/shape.h"
#include "nlohmann/json.hpp"

namespace dfl::store {
namespace {

using nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr char kDtypes[] =
    "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL";

// The header's JSON. Refuses keys that come twice, which JSON parsers let pass,
// and nesting that no header has.
absl::StatusOr<json> ParseJson(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string refused;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        keys.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case json::parse_event_t::key:
        if (!keys.back().insert(parsed.get<std::string>()).second &&
            refused.empty()) {
          refused = absl::StrCat(QuotedName(parsed.get<std::string>()),
                                 " comes twice in the header");
        }
        break;
      default:
        break;
    }
    if (depth > 4 && refused.empty()) {
      refused = "the header is nested too deeply";
    }
    return refused.empty();
  };
  try {
    json header = json::parse(text.begin(), text.end(), watch);
    if (!refused.empty()) return SafetensorsError(refused);
    return header;
  } catch (const std::exception& error) {
    if (!refused.empty()) return SafetensorsError(refused);
    return SafetensorsError(
        absl::StrCat("the header is no JSON: ", error.what()));
  }
}

// A non-negative integer below 2^63.
bool ReadCount(const json& value, uint64_t& out) {
  if (!value.is_number_unsigned()) return false;
  out = value.get<uint64_t>();
  return out < (uint64_t{1} << 63);
}

bool ReadCounts(const json& value, std::vector<int64_t>& out) {
  if (!value.is_array()) return false;
  for (const json& item : value) {
    uint64_t count = 0;
    if (!ReadCount(item, count)) return false;
    out.push_back(static_cast<int64_t>(count));
  }
  return true;
}

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

absl::Status ReadMetadata(const json& entry, SafetensorsMetadata& metadata) {
  if (!entry.is_object()) {
    return SafetensorsError("__metadata__ is no JSON object");
  }
  for (const auto& [key, text] : entry.items()) {
    if (!text.is_string()) {
      return SafetensorsError(
          absl::StrCat("__metadata__: ", QuotedName(key), " is no text"));
    }
    metadata[key] = text.get<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<FileTensor> ReadTensor(const std::string& name,
                                      const json& entry) {
  const auto wrong = [&name](const auto&... what) {
    return SafetensorsError(absl::StrCat(QuotedName(name), ": ", what...));
  };
  if (!entry.is_object()) return wrong("its entry is no JSON object");
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return wrong("unknown field ", QuotedName(key),
                   "; allowed: dtype, shape, data_offsets");
    }
  }
  FileTensor tensor;
  tensor.name = name;
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) {
    return wrong("dtype missing or no text; allowed: ", kDtypes);
  }
  tensor.dtype = dtype->get<std::string>();
  if (DtypeBytes(tensor.dtype) == 0) {
    return wrong("dtype ", QuotedName(tensor.dtype),
                 " is unknown; allowed: ", kDtypes,
                 "; convert the tensor or leave it out");
  }
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !ReadCounts(*shape, tensor.shape)) {
    return wrong("its shape is missing or no list of integers");
  }
  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 ||
      !ReadCount((*offsets)[0], tensor.begin) ||
      !ReadCount((*offsets)[1], tensor.end)) {
    return wrong("data_offsets are not two integers of at least 0");
  }
  uint64_t bytes = 0;
  if (!BytesOf(tensor, bytes) || tensor.end < tensor.begin ||
      tensor.end - tensor.begin != bytes) {
    return wrong("data_offsets [", tensor.begin, ", ", tensor.end,
                 "] do not span its shape ", core::ShapeText(tensor.shape),
                 " of ", tensor.dtype);
  }
  return tensor;
}

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
  DFL_ASSIGN_OR_RETURN(const json parsed, ParseJson(text));
  if (!parsed.is_object()) {
    return SafetensorsError("the header is no JSON object");
  }
  SafetensorsHeader header;
  for (const auto& [name, entry] : parsed.items()) {
    if (name == kMetadata) {
      DFL_RETURN_IF_ERROR(ReadMetadata(entry, header.metadata));
      continue;
    }
    DFL_ASSIGN_OR_RETURN(FileTensor tensor, ReadTensor(name, entry));
    header.tensors.push_back(std::move(tensor));
  }
  DFL_RETURN_IF_ERROR(Order(header));
  return header;
}

absl::Status SafetensorsError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", what));
}

std::string QuotedName(absl::string_view name) {
  constexpr size_t kShown = 80;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(name.substr(0, kShown)),
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
