// Reads archives of dflctl debug bundle by a second hand.
#ifndef DFL_TESTS_UNIT_CLI_UNPACK_H_
#define DFL_TESTS_UNIT_CLI_UNPACK_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <string>

namespace dfl::cli {

inline std::string Unpack(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string plain(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  plain.resize(stream.total_out);
  inflateEnd(&stream);
  return plain;
}

// The files of a tar.
inline std::map<std::string, std::string> Files(const std::string& tar) {
  std::map<std::string, std::string> files;
  for (size_t at = 0; at + 512 <= tar.size() && tar[at] != '\0';) {
    const std::string name(tar.c_str() + at);
    const size_t size = std::stoul(tar.substr(at + 124, 11), nullptr, 8);
    files[name] = tar.substr(at + 512, size);
    at += 512 + (size + 511) / 512 * 512;
  }
  return files;
}

}  // namespace dfl::cli

#endif  // DFL_TESTS_UNIT_CLI_UNPACK_H_
