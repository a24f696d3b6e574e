#include "daemon/web/page/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace dfl::web {
namespace {

// By zlib's other half; at most a million bytes.
std::string Inflated(const std::string& compressed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = compressed;
  std::string out(1'000'000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

HttpRequest Accepting(const std::string& encodings) {
  HttpRequest request;
  request.headers["accept-encoding"] = encodings;
  return request;
}

TEST(Gzip, IsReadBack) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * i);
  EXPECT_EQ(Inflated(Gzip(text)), text);
  EXPECT_LT(Gzip(text).size(), text.size());
  EXPECT_EQ(Inflated(Gzip("")), "");
}

TEST(Gzip, IsSentToWhoTakesIt) {
  for (const char* encodings :
       {"gzip", "deflate, gzip;q=1.0", "br, GZIP ; q=0.5", "gzip;x=y"}) {
    EXPECT_TRUE(TakesGzip(Accepting(encodings))) << encodings;
  }
  for (const char* encodings :
       {"", "identity", "gzip;q=0", "br;q=1, gzip; q=0.000", "gzipped"}) {
    EXPECT_FALSE(TakesGzip(Accepting(encodings))) << encodings;
  }
  EXPECT_FALSE(TakesGzip({}));
}

TEST(Gzip, ShortAnswersStayAsTheyAre) {
  HttpResponse response;
  response.body = "{}";
  Compress(Accepting("gzip"), response);
  EXPECT_EQ(response.body, "{}");
  EXPECT_EQ(response.headers.count("Content-Encoding"), 0u);
  response.body = std::string(5000, 'x');
  HttpResponse plain = response;
  Compress({}, plain);
  EXPECT_EQ(plain.body, response.body);
  Compress(Accepting("gzip"), response);
  EXPECT_EQ(response.headers["Content-Encoding"], "gzip");
  EXPECT_EQ(response.headers["Vary"], "Accept-Encoding");
  EXPECT_EQ(Inflated(response.body), plain.body);
}

}  // namespace
}  // namespace dfl::web
