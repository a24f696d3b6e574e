#include "daemon/base/one_line.h"

#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(OneLine, KeepsWhatIsAPlainText) {
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine("Zürich: 3 µs \"x\" \\ \xE6\x97\xA5 \xF0\x9F\x98\x80"),
            "Zürich: 3 µs \"x\" \\ \xE6\x97\xA5 \xF0\x9F\x98\x80");
}

TEST(OneLine, ShowsWhatWouldEndALineOrSteerATerminal) {
  EXPECT_EQ(OneLine("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(OneLine(absl::string_view("\x1b[2J\0\x7f", 6)),
            "\\x1b[2J\\x00\\x7f");
  // C1 controls, line separators and marks of direction, in UTF-8.
  EXPECT_EQ(OneLine("\xC2\x85\xC2\x9B\xE2\x80\xA8\xE2\x80\xAE\xEF\xBB\xBF"),
            "\\u0085\\u009b\\u2028\\u202e\\ufeff");
}

TEST(OneLine, ShowsWhatIsNoUtf8) {
  EXPECT_EQ(OneLine("a\xFF z"), "a\\xff z");
  EXPECT_EQ(OneLine("\xC0\xAF\xE2\x80"), "\\xc0\\xaf\\xe2\\x80");
  EXPECT_EQ(OneLine("\xED\xA0\x80\xF4\x90\x80\x80"),
            "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
}

TEST(OneLineMarked, TakesOneColumnForEach) {
  EXPECT_EQ(OneLineMarked("Z\xC3\xBCrich\n\x1b[2J\xC2\x9B\xE2\x80\xAE\xFF"),
            "Z\xC3\xBCrich??[2J???");
}

}  // namespace
}  // namespace dfl
