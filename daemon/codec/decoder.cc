#include "daemon/codec/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/checksum.h"
#include "daemon/base/huge_pages.h"
#include "daemon/base/status_macros.h"
#include "daemon/codec/coded_steps.h"
#include "daemon/codec/mod_body.h"
#include "daemon/codec/step_code.h"
#include "daemon/codec/value_code.h"
#include "hwy/cache_control.h"

namespace dfl::codec {
namespace {

constexpr size_t kSliceBytes = size_t{16} << 10;

}  // namespace

Assembler::Assembler(const EncodedHeader& header) : header_(header) {
  body_.reserve(static_cast<size_t>(header.body_bytes()));
  AdviseHugePages(body_.data(), body_.capacity());
}

absl::Status Assembler::Append(int64_t offset, absl::string_view bytes) {
  if (offset != received()) {
    return absl::OutOfRangeError(absl::StrCat("a chunk starts at byte ", offset,
                                              "; ", received(),
                                              " are here: continue there"));
  }
  if (static_cast<int64_t>(bytes.size()) > header_.body_bytes() - received()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", bytes.size(), " bytes at ", offset,
                     " passes the end of the body, which its header put at ",
                     header_.body_bytes()));
  }
  body_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

BodyCheck::BodyCheck(const EncodedHeader& header)
    : header_(header), checksum_(ChecksumOfHeader(header)) {}

void BodyCheck::Advance(absl::string_view body) {
  const size_t end =
      std::min(body.size(), static_cast<size_t>(header_.payload_bytes));
  // A slice at a time, so that it is checked while it is in the first cache.
  while (summed_ < end) {
    const size_t slice = std::min(kSliceBytes, end - summed_);
    checksum_ = ExtendCrc32c(checksum_, body.substr(summed_, slice));
    summed_ += slice;
    CheckSummedValues(body);
  }
}

void BodyCheck::CheckSummedValues(absl::string_view body) {
  const int64_t value_bytes =
      static_cast<int64_t>(summed_) - header_.index_bytes();
  const core::ValueType type = header_.format.values;
  // What is one piece is checked when it is decoded.
  if (value_bytes < 0 || IsOnePiece(type)) return;
  const int64_t block_bytes = ValueBytes(type, kBlock);
  const int64_t here = value_bytes >= header_.value_bytes()
                           ? header_.s
                           : value_bytes / block_bytes * kBlock;
  if (here <= checked_) return;
  const char* values = body.data() + header_.index_bytes();
  all_finite_ =
      all_finite_ && CheckValues(type, values + checked_ / kBlock * block_bytes,
                                 here - checked_)
                         .ok();
  checked_ = here;
}

absl::Status BodyCheck::Finish(absl::string_view body) {
  if (static_cast<int64_t>(body.size()) != header_.body_bytes()) {
    return absl::DataLossError(
        absl::StrCat("the message body has ", body.size(),
                     " bytes; its header announces ", header_.body_bytes()));
  }
  Advance(body);
  uint32_t announced;
  std::memcpy(&announced, body.data() + summed_, sizeof(announced));
  if (checksum_ != announced) {
    return absl::DataLossError(
        "the checksum of the message body is wrong: it was damaged on the way "
        "or belongs to another header");
  }
  if (all_finite_) return absl::OkStatus();
  // Once more from the start, for the text.
  return CheckValues(header_.format.values, body.data() + header_.index_bytes(),
                     header_.s);
}

absl::StatusOr<std::unique_ptr<DecodedMessage>> OpenMessage(BodyCheck check,
                                                            std::string body) {
  DFL_RETURN_IF_ERROR(check.Finish(body));
  const EncodedHeader& header = check.header();
  const absl::string_view bytes = body;
  const auto index_bytes = static_cast<size_t>(header.index_bytes());
  FlatVector buffers(static_cast<size_t>(header.buffer_length));
  const size_t buffers_at =
      index_bytes + static_cast<size_t>(header.value_bytes());
  if (!buffers.empty()) {
    std::memcpy(buffers.data(), bytes.data() + buffers_at, buffers.size() * 4);
  }
  for (size_t l = 0; l < buffers.size(); ++l) {
    if (!std::isfinite(buffers[l])) {
      return absl::InvalidArgumentError(
          absl::StrCat("buffer entry ", l, " is ", buffers[l],
                       "; only finite values are taken"));
    }
  }
  std::optional<CoordinateSet> set;
  switch (header.format.coordinates) {
    case core::Coordinates::kDense:
      break;
    case core::Coordinates::kRandom:
      set = CoordinateSet::Random(header.n, header.s, header.seed);
      break;
    case core::Coordinates::kTopK: {
      DFL_ASSIGN_OR_RETURN(
          set, CoordinateSet::DecodeIndices(header.n, header.s,
                                            bytes.substr(0, index_bytes)));
      break;
    }
  }
  std::unique_ptr<DecodedMessage> message(new DecodedMessage(
      header, std::move(body), std::move(set), std::move(buffers)));
  if (IsOnePiece(header.format.values)) {
    DFL_RETURN_IF_ERROR(message->OpenPiece(buffers_at));
  }
  return message;
}

absl::Status DecodedMessage::OpenPiece(size_t bytes) {
  const core::MessageFormat& format = header_.format;
  const absl::string_view piece = absl::string_view(body_).substr(0, bytes);
  if (core::IsSteps(format.values)) {
    steps_.resize(static_cast<size_t>(header_.n));
    const auto decode = format.values == core::ValueType::kSteps
                            ? DecodeSteps
                            : DecodeCodedSteps;
    return decode(format.bits, format.vectors, piece, absl::MakeSpan(steps_));
  }
  const ModLayout layout = {format.modulus, header_.n, header_.seed};
  if (format.values == core::ValueType::kMod) {
    DFL_ASSIGN_OR_RETURN(core::ModOffer offer, DecodeOffer(layout, piece));
    offer_ = std::make_shared<const core::ModOffer>(std::move(offer));
  } else {
    DFL_ASSIGN_OR_RETURN(core::ModAnswer answer, DecodeAnswer(layout, piece));
    answer_ = std::make_shared<const core::ModAnswer>(std::move(answer));
  }
  body_ = std::string();  // all of it is in there
  return absl::OkStatus();
}

DecodedMessage::DecodedMessage(const EncodedHeader& header, std::string body,
                               std::optional<CoordinateSet> set,
                               FlatVector buffers)
    : header_(header),
      body_(std::move(body)),
      set_(std::move(set)),
      buffers_(std::move(buffers)),
      rounding_seed_(RoundingSeed(header.seed)) {}

// Runs end where blocks of sent values do.
class DecodedMessage::Runs {
 public:
  Runs(const DecodedMessage& message, core::CoordinateRange range)
      : set_(message.set_), end_(range.end) {
    run_.values = message.values();
    run_.rounding_seed = message.rounding_seed_;
    run_.q = range.begin;
    if (set_.has_value()) {
      run_.q = set_->Rank(range.begin);
      end_ = set_->Rank(range.end);
      cursor_ = set_->From(range.begin);
      Take(run_.q);
    }
    Set();
  }

  bool done() const { return run_.q == end_; }
  const ValueRun& run() const { return run_; }
  // The coordinates of the run after this one; none when dense.
  absl::Span<const uint32_t> following() const { return following_; }

  void Next() {
    run_.q += run_.count;
    if (!done()) Set();
  }

 private:
  int64_t CountFrom(int64_t q) const {
    return std::min(kBlock - q % kBlock, end_ - q);
  }

  // Makes those from q on the following ones.
  void Take(int64_t q) {
    place_ ^= 1;
    following_ =
        absl::MakeConstSpan(coordinates_[place_].data(),
                            q < end_ ? static_cast<size_t>(CountFrom(q)) : 0);
    set_->Take(&cursor_,
               absl::MakeSpan(coordinates_[place_].data(), following_.size()));
  }

  void Set() {
    run_.count = CountFrom(run_.q);
    run_.first = run_.q;  // of consecutive ones, when dense
    if (!set_.has_value()) return;
    run_.coordinates = following_.data();
    Take(run_.q + run_.count);
  }

  const std::optional<CoordinateSet>& set_;
  int64_t end_;
  CoordinateSet::Cursor cursor_;
  ValueRun run_;
  std::array<std::array<uint32_t, kBlock>, 2> coordinates_;
  int place_ = 0;
  absl::Span<const uint32_t> following_;
};

void DecodedMessage::AddDifference(core::CoordinateRange range,
                                   absl::Span<const float> own, float weight,
                                   absl::Span<float> sum,
                                   absl::Span<int32_t> counts) {
  DFL_CHECK(0 <= range.begin && range.begin <= range.end &&
            range.end <= header_.n);
  const auto length = static_cast<size_t>(range.size());
  DFL_CHECK(own.size() == length && sum.size() == length &&
            (counts.empty() || counts.size() == length));
  if (carried() == 0) return;
  DifferenceSink sink;
  sink.begin = range.begin;
  sink.own = own.data();
  sink.weight = weight;
  sink.sum = sum.data();
  sink.counts = counts.empty() ? nullptr : counts.data();

  Runs runs(*this, range);
  for (; !runs.done(); runs.Next()) AddDifferences(type(), runs.run(), sink);
}

void DecodedMessage::MoveOwn(core::CoordinateRange range, float weight,
                             absl::Span<float> own) {
  DFL_CHECK(0 <= range.begin && range.begin <= range.end &&
            range.end <= header_.n &&
            own.size() == static_cast<size_t>(range.size()));
  Runs runs(*this, range);
  for (; !runs.done(); runs.Next()) {
    // The next run's are fetched meanwhile.
    for (const uint32_t l : runs.following()) {
      hwy::Prefetch(&own[l - static_cast<uint32_t>(range.begin)]);
    }
    MoveByDifferences(type(), runs.run(), weight, range.begin, own.data());
  }
}

absl::Status DecodedMessage::CopyDense(absl::Span<float> out) const {
  DFL_CHECK(static_cast<int64_t>(out.size()) == header_.n);
  if (carried() != header_.n ||
      header_.format.coordinates != core::Coordinates::kDense) {
    return absl::FailedPreconditionError(
        absl::StrCat("the message carries ", carried(), " of ", header_.n,
                     " parameters (", ToString(header_.format.coordinates), " ",
                     ToString(header_.format.values),
                     "); a whole model comes only in a dense message"));
  }
  for (int64_t q = 0; q < header_.n; q += kBlock) {
    const int64_t count = std::min(kBlock, header_.n - q);
    DecodeRun(type(), values(), q,
              out.subspan(static_cast<size_t>(q), static_cast<size_t>(count)));
  }
  return absl::OkStatus();
}

}  // namespace dfl::codec
