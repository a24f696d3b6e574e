#include "daemon/codec/encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/coded_steps.h"
#include "daemon/codec/mod_body.h"
#include "daemon/codec/rounding.h"
#include "daemon/codec/step_code.h"
#include "daemon/codec/value_code.h"
#include "daemon/codec/value_kernels.h"

namespace dfl::codec {
namespace {

// Indices and buffers are written in pieces of up to this many bytes.
constexpr size_t kPieceBytes = 1024;
// Written pieces are summed when they have this many bytes together.
constexpr size_t kSumBytes = 8 * kPieceBytes;

// The first of `values`, which are those from `begin` on, whose magnitude is
// beyond `largest` or not a number.
absl::Status CheckMagnitudes(absl::Span<const float> values, float largest,
                             absl::string_view what, size_t begin = 0) {
  const auto limit = std::bit_cast<uint32_t>(largest);
  if (kernels::LargestBits32(reinterpret_cast<const char*>(values.data()),
                             values.size()) <= limit) {
    return absl::OkStatus();
  }
  const auto bad = std::find_if(values.begin(), values.end(), [=](float v) {
    return (std::bit_cast<uint32_t>(v) & kMagnitude) > limit;
  });
  return absl::InvalidArgumentError(absl::StrCat(
      what, " ", begin + static_cast<size_t>(bad - values.begin()), " is ",
      *bad, "; only finite values up to ", largest,
      " can be sent in this format: the model has diverged, take a smaller "
      "step size or start again from a checkpoint"));
}

bool IsSteps(const core::MessageFormat& format) {
  return format.values == core::ValueType::kSteps;
}

int64_t LengthOf(const EncoderInput& input) {
  if (input.offer != nullptr) return input.offer->n;
  if (input.answer != nullptr) return input.answer->n;
  return static_cast<int64_t>(input.values.size());
}

// The body of what is written as one piece (IsOnePiece), and its format.
std::string WholeBody(const EncoderInput& input, core::MessageFormat* format) {
  if (input.offer != nullptr) return EncodeOffer(*input.offer);
  if (input.answer != nullptr) return EncodeAnswer(*input.answer);
  std::string body = EncodeSteps(*input.steps);
  if (format->bits == 1) return body;  // signs
  std::string coded = EncodeCodedSteps(*input.steps);
  if (coded.size() >= body.size()) return body;
  format->values = core::ValueType::kCodedSteps;
  return coded;
}

void CheckOnePiece(const EncoderInput& input) {
  const core::MessageFormat& format = input.format;
  DFL_CHECK((input.steps != nullptr) == IsSteps(format));
  DFL_CHECK((input.offer != nullptr) ==
            (format.values == core::ValueType::kMod));
  DFL_CHECK((input.answer != nullptr) ==
            (format.values == core::ValueType::kModAnswer));
  if (!IsOnePiece(format.values)) return;
  DFL_CHECK(format.coordinates == core::Coordinates::kDense &&
            !input.keep_sent);
  if (input.steps != nullptr) {
    DFL_CHECK(input.seed == 0 &&
              input.values.data() == input.steps->values.data());
  } else if (input.offer != nullptr) {
    DFL_CHECK(input.seed == input.offer->seed &&
              format.modulus == input.offer->spec.modulus);
  } else {
    DFL_CHECK(input.seed == input.answer->seed &&
              format.modulus == input.answer->spec.modulus);
  }
}

absl::Status CheckInput(const EncoderInput& input) {
  const int64_t n = LengthOf(input);
  if (n < 1 || n > kMaxVectorLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("a vector of ", n,
                     " values cannot be sent; allowed: 1 "
                     "to ",
                     kMaxVectorLength));
  }
  if (static_cast<int64_t>(input.buffers.size()) > kMaxVectorLength) {
    return absl::InvalidArgumentError(
        absl::StrCat(input.buffers.size(),
                     " buffer entries cannot be sent; "
                     "allowed: up to ",
                     kMaxVectorLength));
  }
  if (input.format.coordinates != core::Coordinates::kDense &&
      (input.sent < 1 || input.sent > n)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot send ", input.sent, " of ", n, " values; allowed: 1 to ", n));
  }
  if (!input.reference.empty() &&
      (input.format.coordinates != core::Coordinates::kTopK ||
       input.reference.size() != input.values.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a reference of ", input.reference.size(), " values came with ", n,
        " values as ", ToString(input.format.coordinates),
        "; allowed: none, or for topk one of the same length"));
  }
  CheckOnePiece(input);
  if (IsSteps(input.format)) {
    DFL_RETURN_IF_ERROR(
        CheckMagnitudes(input.steps->steps, core::kMostStep, "step"));
  }
  if (IsOnePiece(input.format.values)) {
    // Others are looked at block by block, while they are written.
    DFL_RETURN_IF_ERROR(CheckMagnitudes(
        input.values, LargestMagnitude(input.format.values), "parameter"));
  }
  return CheckMagnitudes(
      input.buffers, LargestMagnitude(core::ValueType::kFp32), "buffer entry");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Encoder>> Encoder::Create(
    const EncoderInput& input) {
  DFL_RETURN_IF_ERROR(CheckInput(input));
  EncodedHeader header;
  header.format = input.format;
  header.n = LengthOf(input);
  header.s = header.n;
  header.seed = input.seed;
  header.buffer_length = static_cast<int64_t>(input.buffers.size());
  std::optional<CoordinateSet> set;
  std::string indices;
  switch (input.format.coordinates) {
    case core::Coordinates::kDense:
      if (IsOnePiece(input.format.values)) {
        indices = WholeBody(input, &header.format);
      }
      break;
    case core::Coordinates::kRandom:
      header.s = input.sent;
      set = CoordinateSet::Random(header.n, header.s, input.seed);
      break;
    case core::Coordinates::kTopK:
      header.s = input.sent;
      set = CoordinateSet::LargestDifferences(input.values, input.reference,
                                              header.s);
      indices = set->EncodeIndices();
      break;
  }
  header.payload_bytes =
      static_cast<int64_t>(indices.size()) + 4 * header.buffer_length;
  if (!IsOnePiece(input.format.values)) {
    header.payload_bytes += header.value_bytes();
  }
  return std::unique_ptr<Encoder>(
      new Encoder(input, header, std::move(set), std::move(indices)));
}

Encoder::Encoder(const EncoderInput& input, EncodedHeader header,
                 std::optional<CoordinateSet> set, std::string indices)
    : input_(input),
      header_(header),
      set_(std::move(set)),
      indices_(std::move(indices)),
      rounding_seed_(RoundingSeed(input.seed)),
      checksum_(ChecksumOfHeader(header)) {
  input_.reference = {};
  input_.steps = nullptr;
  input_.offer = nullptr;
  input_.answer = nullptr;
  if (set_.has_value()) cursor_ = set_->From(0);
  if (input_.keep_sent) {
    sent_.coordinates.reserve(static_cast<size_t>(header_.s));
    sent_.values.reserve(static_cast<size_t>(header_.s));
  }
  SkipEmptySections();
}

void Encoder::SkipEmptySections() {
  const auto next = [this](Section section) {
    section_ = section;
    section_position_ = 0;
  };
  if (section_ == Section::kIndices && section_position_ == indices_.size()) {
    next(Section::kValues);
  }
  if (section_ == Section::kValues &&
      (IsOnePiece(header_.format.values) ||
       section_position_ == static_cast<size_t>(header_.s))) {
    next(Section::kBuffers);
  }
  if (section_ == Section::kBuffers &&
      section_position_ == input_.buffers.size() * 4) {
    next(Section::kTrailer);
  }
}

size_t Encoder::PieceBytes() const {
  switch (section_) {
    case Section::kIndices:
      return std::min(kPieceBytes, indices_.size() - section_position_);
    case Section::kValues:
      return static_cast<size_t>(ValueBytes(
          header_.format.values,
          std::min(kBlock,
                   header_.s - static_cast<int64_t>(section_position_))));
    case Section::kBuffers:
      return std::min(kPieceBytes,
                      input_.buffers.size() * 4 - section_position_);
    case Section::kTrailer:
      return static_cast<size_t>(kTrailerBytes);
    case Section::kEnd:
      return 0;
  }
  DFL_CHECK(false);
}

bool Encoder::WritePiece(char* out) {
  const size_t bytes = PieceBytes();
  switch (section_) {
    case Section::kIndices:
      std::memcpy(out, indices_.data() + section_position_, bytes);
      section_position_ += bytes;
      break;
    case Section::kValues:
      if (!WriteValues(out)) return false;
      break;
    case Section::kBuffers:
      std::memcpy(out,
                  reinterpret_cast<const char*>(input_.buffers.data()) +
                      section_position_,
                  bytes);
      section_position_ += bytes;
      break;
    case Section::kTrailer:
      std::memcpy(out, &checksum_, sizeof(checksum_));
      section_ = Section::kEnd;
      return true;
    case Section::kEnd:
      return true;
  }
  SkipEmptySections();
  return true;
}

bool Encoder::CheckUpTo(size_t end) {
  status_ = CheckMagnitudes(input_.values.subspan(checked_, end - checked_),
                            LargestMagnitude(header_.format.values),
                            "parameter", checked_);
  checked_ = end;
  return status_.ok();
}

bool Encoder::WriteValues(char* out) {
  const auto q = static_cast<int64_t>(section_position_);
  const auto count = static_cast<size_t>(std::min(kBlock, header_.s - q));
  std::array<uint32_t, kBlock> coordinates;
  std::array<float, kBlock> gathered;
  absl::Span<const float> values;
  const bool last = q + static_cast<int64_t>(count) == header_.s;
  if (set_.has_value()) {
    set_->Take(&cursor_, absl::MakeSpan(coordinates.data(), count));
    // And those between them.
    if (!CheckUpTo(last ? input_.values.size() : coordinates[count - 1] + 1)) {
      return false;
    }
    for (size_t k = 0; k < count; ++k) {
      gathered[k] = input_.values[coordinates[k]];
    }
    values = absl::MakeConstSpan(gathered.data(), count);
  } else {
    if (!CheckUpTo(section_position_ + count)) return false;
    values = input_.values.subspan(section_position_, count);
  }
  EncodeBlock(header_.format.values, rounding_seed_, q, values, out);
  if (input_.keep_sent) {
    for (size_t k = 0; k < count; ++k) {
      sent_.coordinates.push_back(
          set_.has_value() ? coordinates[k] : static_cast<uint32_t>(q + k));
    }
    sent_.values.resize(sent_.values.size() + count);
    // One block on its own is a message whose values start there.
    DecodeRun(header_.format.values, out, 0,
              absl::MakeSpan(sent_.values).last(count));
  }
  section_position_ += count;
  return true;
}

void Encoder::Sum(absl::Span<const char> written) {
  checksum_ = ExtendCrc32c(checksum_,
                           absl::string_view(written.data(), written.size()));
}

size_t Encoder::Next(absl::Span<char> out) {
  DFL_CHECK(!out.empty());
  if (!status_.ok()) return 0;
  out = out.first(static_cast<size_t>(std::min(
      static_cast<int64_t>(out.size()), header_.body_bytes() - position_)));
  size_t filled = std::min(out.size(), rest_.size() - rest_position_);
  if (filled > 0) {
    std::memcpy(out.data(), rest_.data() + rest_position_, filled);
    rest_position_ += filled;
  }
  // Several pieces at a time, while they are in the first cache.
  size_t summed = filled;
  const auto sum = [&] {
    Sum(out.subspan(summed, filled - summed));
    summed = filled;
  };
  while (filled < out.size()) {
    const size_t room = out.size() - filled;
    const size_t piece = PieceBytes();
    DFL_CHECK(piece > 0);
    const bool cut = piece > room;
    if (cut || section_ == Section::kTrailer || filled - summed >= kSumBytes) {
      sum();
    }
    if (!cut) {
      if (!WritePiece(&out[filled])) break;
      filled += piece;
      continue;
    }
    rest_.resize(piece);
    if (!WritePiece(rest_.data())) break;
    Sum(rest_);
    std::memcpy(&out[filled], rest_.data(), room);
    rest_position_ = room;
    filled = summed = out.size();
  }
  sum();
  position_ += static_cast<int64_t>(filled);
  return filled;
}

std::string Encoder::Next(int64_t max_bytes) {
  DFL_CHECK(max_bytes >= 1);
  std::string chunk;
  chunk.resize(static_cast<size_t>(
      std::min(max_bytes, header_.body_bytes() - position_)));
  if (!chunk.empty()) chunk.resize(Next(absl::MakeSpan(chunk)));
  return chunk;
}

SentValues Encoder::TakeSent() {
  DFL_CHECK(input_.keep_sent && done() && status_.ok());
  return std::move(sent_);
}

}  // namespace dfl::codec
