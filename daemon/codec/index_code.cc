#include "daemon/codec/index_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dfl::codec {

static_assert(std::endian::native == std::endian::little,
              "the codec loads and stores little-endian numbers in place");

int RiceParameter(int64_t n, int64_t s) {
  int k = 0;
  while ((s << (k + 1)) <= n - s) ++k;
  return k;
}

int64_t MinIndexBytes(int64_t n, int64_t s) {
  return (s * (RiceParameter(n, s) + 1) + 7) / 8;
}

int64_t MaxIndexBytes(int64_t n, int64_t s) {
  const int k = RiceParameter(n, s);
  return (s * (k + 1) + ((n - s) >> k) + 7) / 8;
}

void GapWriter::AddLong(uint64_t gap) {
  uint64_t zeros = gap >> k_;
  for (; zeros >= 31; zeros -= 31) Put(0, 31);
  Put(uint64_t{1} << zeros, static_cast<int>(zeros) + 1);
  Put(gap & ((uint64_t{1} << k_) - 1), k_);
}

std::string GapWriter::Finish() {
  for (; filled_ > 0; filled_ -= 8) {
    bytes_[size_++] = static_cast<char>(pending_ & 0xFF);
    pending_ >>= 8;
  }
  bytes_.resize(size_);
  filled_ = 0;
  pending_ = 0;
  size_ = 0;
  return std::move(bytes_);
}

uint64_t GapReader::Window() const {
  const size_t byte = position_ >> 3;
  uint64_t window = 0;
  if (byte < bytes_.size()) {
    std::memcpy(&window, bytes_.data() + byte,
                std::min<size_t>(8, bytes_.size() - byte));
  }
  return window >> (position_ & 7);
}

bool GapReader::NextLong(uint64_t* gap) {
  uint64_t high = 0;
  uint64_t window = Window();
  while (window == 0) {
    // Bits up to the end of the window were zero: 57 at least.
    if (position_ >= bits_) return false;
    high += 57;
    position_ += 57;
    window = Window();
  }
  const int zeros = std::countr_zero(window);
  high += static_cast<uint64_t>(zeros);
  position_ += static_cast<uint64_t>(zeros) + 1;
  if (position_ + static_cast<uint64_t>(k_) > bits_) return false;
  const uint64_t low = Window() & ((uint64_t{1} << k_) - 1);
  position_ += static_cast<uint64_t>(k_);
  *gap = (high << k_) | low;
  return true;
}

bool GapReader::AtEnd() const {
  return position_ <= bits_ && bits_ - position_ < 8 && Window() == 0;
}

}  // namespace dfl::codec
