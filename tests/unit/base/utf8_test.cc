#include "daemon/base/utf8.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(IsUtf8, TakesTextOfAnyLanguage) {
  for (const char* text : {"", "cat", "Gr\xc3\xbcn", "\xe7\x8c\xab",
                           "\xf0\x9f\x90\x88", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(absl::string_view("\0", 1)));
}

TEST(IsUtf8, RefusesOtherBytes) {
  for (const char* text : {"Gr\xfcn", "\x80", "\xc3", "\xe7\x8c", "\xc0\xaf",
                           "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xff", "\xc3\x28"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(StartOf, CutsNoCharacter) {
  const std::string text = "a\xc3\xbc\xe7\x8c\xab\xf0\x9f\x90\x88z";
  const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
  for (size_t bytes = 0; bytes < std::size(kept); ++bytes) {
    EXPECT_EQ(StartOf(text, bytes), text.substr(0, kept[bytes])) << bytes;
  }
  EXPECT_EQ(StartOf("\x8c\x8c\x8c\x8c\x8c", 3), "\x8c\x8c\x8c");
  EXPECT_EQ(StartOf("ab\xf0\x9f\x90", 3), "ab\xf0");
}

}  // namespace
}  // namespace dfl
