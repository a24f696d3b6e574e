#include "daemon/base/utf8.h"

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

}  // namespace
}  // namespace dfl
