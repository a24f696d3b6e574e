#include "daemon/page/page_html.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/sha256.h"
#include "daemon/page/page_parts.h"

namespace dfl::page {
namespace {

// Where the parts stand in the shell.
constexpr char kStyleMark[] = "/*STYLE*/";
constexpr char kScriptMark[] = "/*SCRIPT*/";
constexpr char kPolicyMark[] = "<!--POLICY-->";
constexpr char kDocumentMark[] = "<!--DOCUMENT-->";

// The source of an inline element, as Content-Security-Policy names it.
std::string HashSource(absl::string_view text) {
  return absl::StrCat(
      "'sha256-", absl::Base64Escape(absl::HexStringToBytes(Sha256Hex(text))),
      "'");
}

// What a file of its own and a served page have in common.
std::string CommonPolicy() {
  return absl::StrCat("default-src 'none'; script-src ", HashSource(kScript),
                      "; style-src ", HashSource(kStyle),
                      "; img-src data:; base-uri 'none'; form-action 'none'");
}

std::string Filled(absl::string_view policy, absl::string_view document) {
  // In this order: what a document says is no mark.
  return absl::StrReplaceAll(kShell, {{kStyleMark, kStyle},
                                      {kScriptMark, kScript},
                                      {kPolicyMark, policy},
                                      {kDocumentMark, document}});
}

}  // namespace

const std::string& Html() {
  static const std::string* const html = new std::string(Filled("", ""));
  return *html;
}

const std::string& SecurityPolicy() {
  static const std::string* const policy = new std::string(absl::StrCat(
      CommonPolicy(), "; connect-src 'self'; frame-ancestors 'none'"));
  return *policy;
}

std::string HtmlWith(absl::string_view document) {
  // Nothing in the document may end its element.
  const std::string harmless =
      absl::StrReplaceAll(document, {{"<", "\\u003c"}});
  return Filled(
      absl::StrCat("<meta http-equiv=\"Content-Security-Policy\" content=\"",
                   CommonPolicy(), "\">"),
      absl::StrCat("<script type=\"application/json\" id=\"document\">",
                   harmless, "</script>"));
}

}  // namespace dfl::page
