#include "daemon/web/page/gzip.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace dfl::web {
namespace {

// Below this a packet is sent in any case.
constexpr size_t kWorthWhile = 1000;
constexpr int kWindowBitsOfGzip = 15 + 16;

// "gzip;q=0" refuses it.
bool Refuses(absl::string_view weight) {
  weight = absl::StripAsciiWhitespace(weight);
  double q = 1;
  return absl::StartsWithIgnoreCase(weight, "q=") &&
         absl::SimpleAtod(weight.substr(2), &q) && q <= 0;
}

}  // namespace

std::string Gzip(absl::string_view data) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                   kWindowBitsOfGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string out(deflateBound(&stream, data.size()), '\0');
  // zlib does not write to it.
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

bool TakesGzip(const HttpRequest& request) {
  const auto accepted = request.headers.find("accept-encoding");
  if (accepted == request.headers.end()) return false;
  for (const absl::string_view entry : absl::StrSplit(accepted->second, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(';', 1));
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts.first),
                               "gzip")) {
      return !Refuses(parts.second);
    }
  }
  return false;
}

void Compress(const HttpRequest& request, HttpResponse& response) {
  response.headers["Vary"] = "Accept-Encoding";
  if (response.body.size() < kWorthWhile || !TakesGzip(request)) return;
  std::string compressed = Gzip(response.body);
  if (compressed.empty()) return;
  response.body = std::move(compressed);
  response.headers["Content-Encoding"] = "gzip";
}

}  // namespace dfl::web
