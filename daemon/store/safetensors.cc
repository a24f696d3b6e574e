#include "daemon/store/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/half.h"
#include "daemon/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace dfl::store {
namespace {

using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little,
              "values are copied as the file has them");

constexpr size_t kLengthBytes = 8;
constexpr char kMetadata[] = "__metadata__";

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

RawTensor RawOf(const ports::TensorInfo& tensor, absl::Span<const float> flat) {
  const auto values = flat.subspan(static_cast<size_t>(tensor.offset),
                                   static_cast<size_t>(tensor.size));
  return {tensor.name, "F32", tensor.shape,
          absl::string_view(reinterpret_cast<const char*>(values.data()),
                            values.size() * sizeof(float))};
}

// The tensors of `flat`, each under all of its names.
void AddUnderAllNames(const std::vector<ports::TensorInfo>& tensors,
                      const std::map<std::string, std::string>& aliases,
                      absl::Span<const float> flat,
                      std::vector<RawTensor>& list) {
  std::multimap<absl::string_view, absl::string_view> aliases_of;
  for (const auto& [alias, name] : aliases) aliases_of.emplace(name, alias);
  for (const ports::TensorInfo& tensor : tensors) {
    list.push_back(RawOf(tensor, flat));
    const auto [begin, end] = aliases_of.equal_range(tensor.name);
    for (auto it = begin; it != end; ++it) {
      list.push_back(list.back());
      list.back().name = std::string(it->second);
    }
  }
}

// The header of `tensors`, which stand one after the other.
absl::StatusOr<std::string> HeaderText(const std::vector<RawTensor>& tensors,
                                       const SafetensorsMetadata& metadata) {
  std::set<absl::string_view> names = {kMetadata};
  const auto entry_of = [](absl::string_view name, const ordered_json& entry) {
    return absl::StrCat(ordered_json(std::string(name)).dump(), ":",
                        entry.dump());
  };
  try {
    ordered_json about = metadata;
    if (metadata.count("format") == 0) about["format"] = "pt";
    std::string text = absl::StrCat("{", entry_of(kMetadata, about));
    uint64_t begin = 0;
    for (const RawTensor& tensor : tensors) {
      if (!names.insert(tensor.name).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "two tensors of the model have one name, or one is called ",
            kMetadata));
      }
      const uint64_t end = begin + tensor.bytes.size();
      absl::StrAppend(&text, ",",
                      entry_of(tensor.name, {{"dtype", tensor.dtype},
                                             {"shape", tensor.shape},
                                             {"data_offsets", {begin, end}}}));
      begin = end;
    }
    return absl::StrCat(text, "}");
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name cannot be written: ", error.what()));
  }
}

float FromBfloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <typename T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Reads a value of a file; counts it if float32 cannot hold it as it is.
using Decoder = float (*)(const char* bytes, int64_t& rounded);

Decoder DecoderOf(absl::string_view dtype) {
  if (dtype == "F32") {
    return [](const char* bytes, int64_t&) { return Load<float>(bytes); };
  }
  if (dtype == "F16") {
    return [](const char* bytes, int64_t&) {
      return FloatOfHalf(Load<uint16_t>(bytes));
    };
  }
  if (dtype == "BF16") {
    return [](const char* bytes, int64_t&) {
      return FromBfloat(Load<uint16_t>(bytes));
    };
  }
  return [](const char* bytes, int64_t& rounded) {
    const auto wide = Load<double>(bytes);
    if (!(std::fabs(wide) <= std::numeric_limits<float>::max())) {
      return std::numeric_limits<float>::infinity();
    }
    const auto value = static_cast<float>(wide);
    if (static_cast<double>(value) != wide) ++rounded;
    return value;
  };
}

}  // namespace

SafetensorsSource::SafetensorsSource(std::string header)
    : header_(std::move(header)), size_(header_.size()) {}

void SafetensorsSource::Append(absl::string_view bytes) {
  pieces_.push_back({size_, bytes});
  size_ += bytes.size();
}

absl::StatusOr<SafetensorsSource> SafetensorsSource::Create(
    const ports::ModelInfo& model, absl::Span<const float> parameters,
    absl::Span<const float> buffers, const SafetensorsMetadata& metadata,
    const std::vector<RawTensor>& others) {
  DFL_RETURN_IF_ERROR(CheckLayout(model.parameters, model.parameter_count,
                                  parameters.size(), "parameters"));
  DFL_RETURN_IF_ERROR(CheckLayout(model.buffers, model.buffer_count,
                                  buffers.size(), "buffer values"));
  std::vector<RawTensor> tensors;
  AddUnderAllNames(model.parameters, model.aliases, parameters, tensors);
  AddUnderAllNames(model.buffers, model.aliases, buffers, tensors);
  tensors.insert(tensors.end(), others.begin(), others.end());
  // Wide values first, so that each stands at a multiple of its size.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const RawTensor& a, const RawTensor& b) {
                     return DtypeBytes(a.dtype) > DtypeBytes(b.dtype);
                   });
  DFL_ASSIGN_OR_RETURN(std::string text, HeaderText(tensors, metadata));
  // Blanks at the end put the values at a multiple of eight.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string head(kLengthBytes, '\0');
  const uint64_t length = text.size();
  std::memcpy(head.data(), &length, kLengthBytes);
  SafetensorsSource source(head + text);
  for (const RawTensor& tensor : tensors) source.Append(tensor.bytes);
  return source;
}

size_t SafetensorsSource::Read(uint64_t offset, absl::Span<char> out) const {
  if (offset >= size()) return 0;
  const size_t count =
      static_cast<size_t>(std::min<uint64_t>(out.size(), size() - offset));
  out = out.first(count);
  CopyPart(header_, 0, offset, out);
  // The last piece that does not begin behind the offset, and on from there.
  auto piece = std::upper_bound(
      pieces_.begin(), pieces_.end(), offset,
      [](uint64_t at, const Piece& p) { return at < p.begin; });
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->begin < offset + count; ++piece) {
    CopyPart(piece->bytes, piece->begin, offset, out);
  }
  return count;
}

SafetensorsReader::SafetensorsReader(ports::ModelInfo model,
                                     absl::Span<float> parameters,
                                     absl::Span<float> buffers,
                                     ImportOptions options)
    : model_(std::move(model)),
      parameters_(parameters),
      buffers_(buffers),
      options_(std::move(options)) {
  DFL_CHECK(CheckLayout(model_.parameters, model_.parameter_count,
                        parameters.size(), "parameters")
                .ok());
  DFL_CHECK(CheckLayout(model_.buffers, model_.buffer_count, buffers.size(),
                        "buffer values")
                .ok());
}

size_t SafetensorsReader::max_header_bytes() const {
  return kMaxMetadataBytes +
         (size_t{1} << 10) * (model_.parameters.size() + model_.buffers.size() +
                              model_.others.size() + model_.aliases.size());
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
        return SafetensorsError(absl::StrCat(
            "the header's length is ", header_bytes_, "; allowed: 2 to ",
            max_header_bytes(), "; is it a safetensors file?"));
      }
    }
    const size_t whole = kLengthBytes + static_cast<size_t>(header_bytes_);
    const size_t part = std::min(piece.size(), whole - head_.size());
    head_.append(piece.data(), part);
    piece.remove_prefix(part);
    if (head_.size() < whole) return absl::OkStatus();
    DFL_RETURN_IF_ERROR(ReadHeader());
  }
  DFL_RETURN_IF_ERROR(ReadValues(piece));
  if (!piece.empty()) {
    return SafetensorsError(absl::StrCat("there are bytes behind the ",
                                         header_.data_bytes, " of the values"));
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ReadHeader() {
  DFL_ASSIGN_OR_RETURN(
      header_,
      ParseSafetensorsHeader(absl::string_view(head_).substr(kLengthBytes)));
  if (check_metadata_) {
    DFL_RETURN_IF_ERROR(check_metadata_(header_.metadata));
  }
  DFL_ASSIGN_OR_RETURN(plan_, PlanImport(model_, header_, options_));
  header_done_ = true;
  head_ = std::string();
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ReadValues(absl::string_view& piece) {
  while (tensor_ < header_.tensors.size()) {
    const FileTensor& tensor = header_.tensors[tensor_];
    const bool taken =
        move_ < plan_.moves.size() && plan_.moves[move_].tensor == tensor_;
    const size_t part = static_cast<size_t>(
        std::min<uint64_t>(piece.size(), tensor.end - data_offset_));
    if (taken) {
      DFL_RETURN_IF_ERROR(
          Convert(tensor, plan_.moves[move_], piece.substr(0, part)));
    }
    piece.remove_prefix(part);
    data_offset_ += part;
    if (data_offset_ < tensor.end) break;
    ++tensor_;
    if (taken) ++move_;
    values_ = 0;
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::Convert(const FileTensor& tensor,
                                        const ImportPlan::Move& move,
                                        absl::string_view piece) {
  const size_t width = DtypeBytes(tensor.dtype);
  const Decoder decode = DecoderOf(tensor.dtype);
  const absl::Span<float> to = (move.buffer ? buffers_ : parameters_)
                                   .subspan(static_cast<size_t>(move.to.offset),
                                            static_cast<size_t>(move.to.size));
  while (value_.size() + piece.size() >= width) {
    const char* bytes = piece.data();
    size_t used = width;
    if (!value_.empty()) {
      used = width - value_.size();
      value_.append(piece.data(), used);
      bytes = value_.data();
    }
    const float value = decode(bytes, rounded_);
    if (!std::isfinite(value)) {
      return SafetensorsError(absl::StrCat(
          QuotedName(tensor.name), ": value ", values_,
          " is not finite as float32; a model with such a value cannot be "
          "trained on"));
    }
    to[static_cast<size_t>(values_++)] = value;
    value_.clear();
    piece.remove_prefix(used);
  }
  value_.append(piece.data(), piece.size());
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
  } else if (data_offset_ < header_.data_bytes) {
    status_ = absl::DataLossError(
        absl::StrCat("safetensors: the file ends after ", data_offset_, " of ",
                     header_.data_bytes, " bytes of values"));
  } else if (rounded_ > 0) {
    plan_.notes.push_back(absl::StrCat(
        rounded_, rounded_ == 1 ? " value of F64 was" : " values of F64 were",
        " rounded: float32 cannot hold more"));
    rounded_ = 0;
  }
  return status_;
}

}  // namespace dfl::store
