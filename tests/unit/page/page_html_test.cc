#include "daemon/page/page_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/sha256.h"
#include "nlohmann/json.hpp"

namespace dfl::page {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What stands between the first `begin` and the next `end`.
std::string Between(const std::string& text, const std::string& begin,
                    const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t start = from + begin.size();
  return text.substr(start, text.find(end, start) - start);
}

std::string HashSource(absl::string_view text) {
  return absl::StrCat(
      "'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))),
      "'");
}

TEST(PageHtml, IsOneDocumentWithAllItsParts) {
  const std::string& html = Html();
  EXPECT_TRUE(absl::StartsWith(html, "<!doctype html>"));
  EXPECT_THAT(html, HasSubstr("uPlot"));
  for (const char* mark :
       {"/*STYLE*/", "/*SCRIPT*/", "<!--POLICY-->", "<!--DOCUMENT-->"}) {
    EXPECT_THAT(html, Not(HasSubstr(mark)));
  }
  // Every copy carries the licence of what is not ours.
  EXPECT_THAT(html, HasSubstr("The MIT License (MIT)"));
  EXPECT_THAT(html, HasSubstr("Copyright (c) 2022 Leon Sorokin"));
}

TEST(PageHtml, NamesNoOtherServer) {
  const std::string& html = Html();
  for (const char* loads : {"src=\"http", "href=\"http", "url(http", "@import",
                            "src=\"//", "fetch(\"http"}) {
    EXPECT_THAT(html, Not(HasSubstr(loads)));
  }
}

TEST(PageHtml, FitsTheBar) { EXPECT_LE(Html().size(), 150'000u); }

TEST(PageHtml, ThePolicyAllowsItsOwnScriptAndStyleAlone) {
  const std::string& html = Html();
  const std::string& policy = SecurityPolicy();
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy,
              HasSubstr(absl::StrCat(
                  "script-src ",
                  HashSource(Between(html, "<script>", "</script>")), ";")));
  EXPECT_THAT(policy,
              HasSubstr(absl::StrCat(
                  "style-src ",
                  HashSource(Between(html, "<style>", "</style>")), ";")));
}

TEST(PageHtml, AFileHoldsItsDocumentAndItsPolicy) {
  const std::string file = HtmlWith(R"({"kind":"run","n":1})");
  const std::string document = Between(
      file, "<script type=\"application/json\" id=\"document\">", "</script>");
  EXPECT_EQ(nlohmann::json::parse(document)["n"], 1);
  EXPECT_THAT(file, HasSubstr("http-equiv=\"Content-Security-Policy\" "
                              "content=\"default-src 'none'"));
  // It asks nobody.
  EXPECT_THAT(Between(file, "http-equiv", ">"), Not(HasSubstr("connect-src")));
}

TEST(PageHtml, ADocumentCannotEndItsElement) {
  const std::string hostile = R"("</script><script>alert(1)</script><!--")";
  const std::string file = HtmlWith(hostile);
  const std::string document = Between(
      file, "<script type=\"application/json\" id=\"document\">", "</script>");
  EXPECT_EQ(nlohmann::json::parse(document), nlohmann::json::parse(hostile));
  EXPECT_THAT(file, Not(HasSubstr("alert(1)</script>")));
  // A mark in a document stays what it is.
  EXPECT_THAT(HtmlWith("\"/*SCRIPT*/\""), HasSubstr("\"/*SCRIPT*/\""));
}

}  // namespace
}  // namespace dfl::page
