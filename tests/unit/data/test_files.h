// Small data files made in the test, byte by byte, and what an error must say.
#ifndef DFL_TESTS_UNIT_DATA_TEST_FILES_H_
#define DFL_TESTS_UNIT_DATA_TEST_FILES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/data/dataset.h"
#include "daemon/data/load.h"

namespace dfl {
namespace data {

// A folder of this process's own, removed when it ends.
class TestFolder {
 public:
  TestFolder()
      : path_(std::filesystem::path(testing::TempDir()) /
              absl::StrCat("dfl_data_test_", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// Writes `bytes` to a file of this test's own and returns its path.
inline std::string WriteFile(const std::string& name, absl::string_view bytes) {
  static const TestFolder kFolder;
  const testing::TestInfo* const test =
      testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = kFolder.File(
      absl::StrCat(test->test_suite_name(), "_", test->name(), "_", name));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  EXPECT_TRUE(file.good()) << path;
  return path;
}

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}
inline std::string Little(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
  return out;
}
inline std::string Big32(uint32_t value) {
  std::string out = Little(value, 4);
  return std::string(out.rbegin(), out.rend());
}

// window 31: gzip; -15: raw deflate.
inline std::string Deflate(absl::string_view bytes, int window) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string out(bytes.size() + bytes.size() / 100 + 1024, '\0');
  std::string in(bytes);
  z.next_in = reinterpret_cast<Bytef*>(&in[0]);
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(&out[0]);
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}
inline std::string Gzip(absl::string_view bytes) { return Deflate(bytes, 31); }

inline std::string Idx(uint32_t magic, const std::vector<uint32_t>& extents,
                       const std::vector<uint8_t>& values) {
  std::string out = Big32(magic);
  for (const uint32_t extent : extents) out += Big32(extent);
  return out + Raw(values);
}

inline std::string Npy(const std::string& descr, const std::string& shape,
                       absl::string_view values,
                       const std::string& order = "False") {
  std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order,
                   ", 'shape': (", shape, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header.push_back(' ');
  header.push_back('\n');
  return absl::StrCat("\x93NUMPY", absl::string_view("\x01\x00", 2),
                      Little(static_cast<uint32_t>(header.size()), 2), header,
                      values);
}

struct ZipEntry {
  std::string name;
  std::string bytes;
  bool deflated;
};
inline std::string Zip(const std::vector<ZipEntry>& entries) {
  std::string out;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const std::string packed =
        entry.deflated ? Deflate(entry.bytes, -15) : entry.bytes;
    const uint32_t crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(entry.bytes.data()),
                entry.bytes.size()));
    const std::string common = absl::StrCat(
        Little(20, 2), Little(0, 2), Little(entry.deflated ? 8 : 0, 2),
        Little(0, 4), Little(crc, 4),
        Little(static_cast<uint32_t>(packed.size()), 4),
        Little(static_cast<uint32_t>(entry.bytes.size()), 4),
        Little(static_cast<uint32_t>(entry.name.size()), 2), Little(0, 2));
    absl::StrAppend(&directory, Little(0x02014b50, 4), Little(20, 2), common,
                    Little(0, 2), Little(0, 2), Little(0, 2), Little(0, 4),
                    Little(static_cast<uint32_t>(out.size()), 4), entry.name);
    absl::StrAppend(&out, Little(0x04034b50, 4), common, entry.name, packed);
  }
  const uint32_t offset = static_cast<uint32_t>(out.size());
  const uint32_t count = static_cast<uint32_t>(entries.size());
  absl::StrAppend(&out, directory, Little(0x06054b50, 4), Little(0, 4),
                  Little(count, 2), Little(count, 2),
                  Little(static_cast<uint32_t>(directory.size()), 4),
                  Little(offset, 4), Little(0, 2));
  return out;
}

// `status` has `code` and its message holds each of `parts`.
inline void ExpectError(const absl::Status& status, absl::StatusCode code,
                        const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(part));
  }
}
inline void ExpectWrong(const absl::StatusOr<Dataset>& result,
                        const std::vector<std::string>& parts) {
  ExpectError(result.status(), absl::StatusCode::kInvalidArgument, parts);
  // Each such message says what would have been right.
  ExpectError(result.status(), absl::StatusCode::kInvalidArgument,
              {"allowed: "});
}
inline void ExpectCut(const absl::StatusOr<Dataset>& result,
                      const std::vector<std::string>& parts) {
  ExpectError(result.status(), absl::StatusCode::kDataLoss, parts);
  ExpectError(result.status(), absl::StatusCode::kDataLoss, {"allowed: "});
}

// Every proper prefix of `bytes` of at least `from` bytes, written as `name`,
// is refused by load(path) as cut short, with an error that names the file.
template <typename LoadFn>
void ExpectEveryTruncationRefused(const std::string& name,
                                  absl::string_view bytes, LoadFn load,
                                  size_t from = 0) {
  for (size_t n = from; n < bytes.size(); ++n) {
    const std::string path = WriteFile(name, bytes.substr(0, n));
    const absl::StatusOr<Dataset> result = load(path);
    ASSERT_EQ(result.status().code(), absl::StatusCode::kDataLoss)
        << "cut to " << n << " of " << bytes.size()
        << " bytes: " << result.status();
    ASSERT_THAT(std::string(result.status().message()),
                testing::HasSubstr(path))
        << n;
  }
}

// No single-bit flip of `bytes` crashes load(path) or makes it return a data
// set of other than `rows` rows; returns how many flips were refused.
template <typename LoadFn>
size_t CountRefusedBitFlips(const std::string& name, absl::string_view bytes,
                            int64_t rows, LoadFn load) {
  size_t refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped(bytes);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const std::string path = WriteFile(name, flipped);
    const absl::StatusOr<Dataset> result = load(path);
    if (result.ok()) {
      EXPECT_EQ(result->rows(), rows) << "bit " << bit;
    } else {
      ++refused;
      EXPECT_THAT(std::string(result.status().message()),
                  testing::HasSubstr(path))
          << "bit " << bit;
    }
  }
  return refused;
}

}  // namespace data
}  // namespace dfl

#endif  // DFL_TESTS_UNIT_DATA_TEST_FILES_H_
