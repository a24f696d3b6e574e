#include "daemon/store/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/knobs.h"
#include "nlohmann/json.hpp"

namespace dfl::store {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "values are copied as the file has them");

constexpr size_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors: ", what));
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kShown = 80;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "...\"" : "\"");
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// "a, b, c and 7 more".
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const size_t shown = std::min(kShown, names.size());
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + static_cast<long>(shown), ", ");
  if (shown < names.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  }
  return text;
}

// The tensors' places are whole and within a flat vector of `count` values.
absl::Status CheckLayout(absl::Span<const ports::TensorInfo> tensors,
                         int64_t count, size_t given, absl::string_view what) {
  if (count < 0 || given != static_cast<size_t>(count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", count, " ", what, ", not ", given));
  }
  int64_t next = 0;
  for (const ports::TensorInfo& tensor : tensors) {
    int64_t product = 1;
    for (const int64_t extent : tensor.shape) product *= extent;
    if (tensor.offset != next || tensor.size != product || tensor.size < 0 ||
        tensor.size > count - next) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name,
                       ": its place in the flat vector is not "
                       "where the tensor before it ends"));
    }
    next += tensor.size;
  }
  if (next != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors hold ", next, " of ", count, " ", what));
  }
  return absl::OkStatus();
}

void AddTensors(absl::Span<const ports::TensorInfo> tensors, uint64_t base,
                ordered_json& header) {
  for (const ports::TensorInfo& tensor : tensors) {
    const uint64_t begin =
        base + sizeof(float) * static_cast<uint64_t>(tensor.offset);
    const uint64_t end =
        begin + sizeof(float) * static_cast<uint64_t>(tensor.size);
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, end}}};
  }
}

// Copies what of `data`, standing at `base` of the file, falls into `out`,
// standing at `offset`.
void CopyPart(absl::string_view data, uint64_t base, uint64_t offset,
              absl::Span<char> out) {
  const uint64_t begin = std::max(base, offset);
  const uint64_t end = std::min(base + data.size(), offset + out.size());
  if (begin >= end) return;
  std::memcpy(out.data() + (begin - offset), data.data() + (begin - base),
              static_cast<size_t>(end - begin));
}

absl::string_view Bytes(absl::Span<const float> values) {
  return absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(float));
}

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
          refused = absl::StrCat(Quoted(parsed.get<std::string>()),
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
    if (!refused.empty()) return Wrong(refused);
    return header;
  } catch (const std::exception& error) {
    if (!refused.empty()) return Wrong(refused);
    return Wrong(absl::StrCat("the header is no JSON: ", error.what()));
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

}  // namespace

SafetensorsSource::SafetensorsSource(std::string header,
                                     absl::Span<const float> parameters,
                                     absl::Span<const float> buffers)
    : header_(std::move(header)),
      parameters_(parameters),
      buffers_(buffers),
      data_bytes_(sizeof(float) * (parameters.size() + buffers.size())) {}

absl::StatusOr<SafetensorsSource> SafetensorsSource::Create(
    const ports::ModelInfo& model, absl::Span<const float> parameters,
    absl::Span<const float> buffers, const SafetensorsMetadata& metadata) {
  DFL_RETURN_IF_ERROR(CheckLayout(model.parameters, model.parameter_count,
                                  parameters.size(), "parameters"));
  DFL_RETURN_IF_ERROR(CheckLayout(model.buffers, model.buffer_count,
                                  buffers.size(), "buffer values"));
  std::string text;
  try {
    ordered_json header = ordered_json::object();
    header[kMetadata] = metadata;
    if (metadata.count("format") == 0) header[kMetadata]["format"] = "pt";
    AddTensors(model.parameters, 0, header);
    AddTensors(model.buffers, sizeof(float) * parameters.size(), header);
    if (header.size() != 1 + model.parameters.size() + model.buffers.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two tensors of the model have one name, or one is called ",
          kMetadata));
    }
    text = header.dump();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name cannot be written: ", error.what()));
  }
  // Blanks at the end put the values at a multiple of eight.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string head(kLengthBytes, '\0');
  const uint64_t length = text.size();
  std::memcpy(head.data(), &length, kLengthBytes);
  return SafetensorsSource(head + text, parameters, buffers);
}

size_t SafetensorsSource::Read(uint64_t offset, absl::Span<char> out) const {
  if (offset >= size()) return 0;
  const size_t count =
      static_cast<size_t>(std::min<uint64_t>(out.size(), size() - offset));
  out = out.first(count);
  const absl::string_view parameters = Bytes(parameters_);
  CopyPart(header_, 0, offset, out);
  CopyPart(parameters, header_.size(), offset, out);
  CopyPart(Bytes(buffers_), header_.size() + parameters.size(), offset, out);
  return count;
}

SafetensorsReader::SafetensorsReader(const ports::ModelInfo& model,
                                     absl::Span<float> parameters,
                                     absl::Span<float> buffers) {
  DFL_CHECK(CheckLayout(model.parameters, model.parameter_count,
                        parameters.size(), "parameters")
                .ok());
  DFL_CHECK(CheckLayout(model.buffers, model.buffer_count, buffers.size(),
                        "buffer values")
                .ok());
  const auto add = [this](const ports::TensorInfo& tensor,
                          absl::Span<float> vector) {
    targets_.push_back({tensor.name, tensor.shape,
                        vector.subspan(static_cast<size_t>(tensor.offset),
                                       static_cast<size_t>(tensor.size))});
  };
  for (const ports::TensorInfo& t : model.parameters) add(t, parameters);
  for (const ports::TensorInfo& t : model.buffers) add(t, buffers);
  std::sort(targets_.begin(), targets_.end(),
            [](const Target& a, const Target& b) { return a.name < b.name; });
  data_bytes_ = sizeof(float) * (parameters.size() + buffers.size());
}

size_t SafetensorsReader::max_header_bytes() const {
  return (size_t{1} << 20) + (size_t{1} << 10) * targets_.size();
}

absl::Status SafetensorsReader::Feed(absl::string_view piece) {
  if (status_.ok()) status_ = Consume(piece);
  return status_;
}

absl::Status SafetensorsReader::Consume(absl::string_view piece) {
  if (!header_done_) {
    if (head_.size() < kLengthBytes) {
      const size_t part = std::min(piece.size(), kLengthBytes - head_.size());
      head_.append(piece.data(), part);
      piece.remove_prefix(part);
      if (head_.size() < kLengthBytes) return absl::OkStatus();
      std::memcpy(&header_bytes_, head_.data(), kLengthBytes);
      if (header_bytes_ < 2 || header_bytes_ > max_header_bytes()) {
        return Wrong(absl::StrCat("the header's length is ", header_bytes_,
                                  "; allowed: 2 to ", max_header_bytes()));
      }
    }
    const size_t whole = kLengthBytes + static_cast<size_t>(header_bytes_);
    const size_t part = std::min(piece.size(), whole - head_.size());
    head_.append(piece.data(), part);
    piece.remove_prefix(part);
    if (head_.size() < whole) return absl::OkStatus();
    DFL_RETURN_IF_ERROR(ParseHeader());
    header_done_ = true;
    head_ = std::string();
  }
  if (piece.size() > data_bytes_ - data_offset_) {
    return Wrong(absl::StrCat("there are bytes behind the ", data_bytes_,
                              " of the values"));
  }
  while (segment_ < segments_.size()) {
    const Segment& segment = segments_[segment_];
    const Target& target = targets_[segment.target];
    const size_t part = static_cast<size_t>(
        std::min<uint64_t>(piece.size(), segment.end - data_offset_));
    if (part > 0) {
      std::memcpy(reinterpret_cast<char*>(target.values.data()) +
                      (data_offset_ - segment.begin),
                  piece.data(), part);
      piece.remove_prefix(part);
      data_offset_ += part;
    }
    if (data_offset_ < segment.end) break;
    DFL_RETURN_IF_ERROR(CheckFinite(target));
    ++segment_;
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::CheckFinite(const Target& target) const {
  for (size_t i = 0; i < target.values.size(); ++i) {
    if (!std::isfinite(target.values[i])) {
      return Wrong(
          absl::StrCat(Quoted(target.name), ": value ", i, " is not finite"));
    }
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ParseHeader() {
  DFL_ASSIGN_OR_RETURN(
      const json header,
      ParseJson(absl::string_view(head_).substr(kLengthBytes)));
  if (!header.is_object()) return Wrong("the header is no JSON object");
  std::vector<Segment> segments;
  std::vector<bool> seen(targets_.size(), false);
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      if (!entry.is_object()) return Wrong("__metadata__ is no JSON object");
      for (const auto& [key, text] : entry.items()) {
        if (!text.is_string()) {
          return Wrong(
              absl::StrCat("__metadata__: ", Quoted(key), " is no text"));
        }
        metadata_[key] = text.get<std::string>();
      }
      continue;
    }
    const auto target = std::lower_bound(
        targets_.begin(), targets_.end(), name,
        [](const Target& t, const std::string& n) { return t.name < n; });
    if (target == targets_.end() || target->name != name) {
      std::vector<std::string> known;
      for (const Target& t : targets_) known.push_back(t.name);
      const std::string nearest = NearestName(name, known);
      return Wrong(absl::StrCat(
          Quoted(name), ": the model has no such tensor; ",
          nearest.empty()
              ? absl::StrCat("it has ", Some(known))
              : absl::StrCat("did you mean ", Quoted(nearest), "?")));
    }
    if (!entry.is_object()) {
      return Wrong(absl::StrCat(Quoted(name), ": its entry is no JSON object"));
    }
    for (const auto& [key, value] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return Wrong(absl::StrCat(Quoted(name), ": unknown field ", Quoted(key),
                                  "; allowed: dtype, shape, data_offsets"));
      }
    }
    const auto dtype = entry.find("dtype");
    if (dtype == entry.end() || !dtype->is_string() ||
        dtype->get_ref<const std::string&>() != "F32") {
      return Wrong(
          absl::StrCat(Quoted(name), ": dtype ",
                       dtype != entry.end() && dtype->is_string()
                           ? Quoted(dtype->get_ref<const std::string&>())
                           : "missing or no text",
                       "; allowed: \"F32\""));
    }
    std::vector<int64_t> shape;
    const auto shape_entry = entry.find("shape");
    if (shape_entry == entry.end() || !ReadCounts(*shape_entry, shape)) {
      return Wrong(absl::StrCat(
          Quoted(name), ": its shape is missing or no list of integers"));
    }
    if (shape != target->shape) {
      return Wrong(absl::StrCat(Quoted(name), ": shape ", ShapeText(shape),
                                "; the model's is ", ShapeText(target->shape)));
    }
    const auto offsets = entry.find("data_offsets");
    Segment segment;
    if (offsets == entry.end() || !offsets->is_array() ||
        offsets->size() != 2 || !ReadCount((*offsets)[0], segment.begin) ||
        !ReadCount((*offsets)[1], segment.end)) {
      return Wrong(absl::StrCat(
          Quoted(name), ": data_offsets are not two integers of at least 0"));
    }
    const uint64_t bytes = sizeof(float) * target->values.size();
    if (segment.end < segment.begin || segment.end - segment.begin != bytes) {
      return Wrong(absl::StrCat(Quoted(name), ": data_offsets [", segment.begin,
                                ", ", segment.end, "] do not span the ", bytes,
                                " bytes of its shape"));
    }
    if (segment.end > data_bytes_) {
      return Wrong(absl::StrCat(Quoted(name), ": data_offsets [", segment.begin,
                                ", ", segment.end, "] pass the ", data_bytes_,
                                " bytes of the model"));
    }
    segment.target = static_cast<size_t>(target - targets_.begin());
    seen[segment.target] = true;
    segments.push_back(segment);
  }
  std::vector<std::string> missing;
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (!seen[i]) missing.push_back(Quoted(targets_[i].name));
  }
  if (!missing.empty()) {
    return Wrong(absl::StrCat("tensors are missing: ", Some(missing)));
  }
  return PlaceSegments(std::move(segments));
}

absl::Status SafetensorsReader::PlaceSegments(std::vector<Segment> segments) {
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  uint64_t next = 0;
  for (const Segment& segment : segments) {
    if (segment.begin != next) {
      return Wrong(absl::StrCat(
          Quoted(targets_[segment.target].name), ": data_offsets [",
          segment.begin, ", ", segment.end, "] ",
          segment.begin < next ? "overlap another tensor's"
                               : "leave a gap before them",
          "; allowed here: ", next));
    }
    next = segment.end;
  }
  segments_ = std::move(segments);
  return absl::OkStatus();
}

absl::Status SafetensorsReader::Finish() {
  if (!status_.ok()) return status_;
  if (!header_done_) {
    status_ = absl::DataLossError(absl::StrCat(
        "safetensors: the file ends in its header, after ", head_.size(),
        head_.size() < kLengthBytes
            ? " bytes"
            : absl::StrCat(" of ", kLengthBytes + header_bytes_, " bytes")));
  } else if (data_offset_ < data_bytes_) {
    status_ = absl::DataLossError(
        absl::StrCat("safetensors: the file ends after ", data_offset_, " of ",
                     data_bytes_, " bytes of values"));
  }
  return status_;
}

}  // namespace dfl::store
