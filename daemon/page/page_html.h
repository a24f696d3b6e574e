// The status page: one HTML document with everything in it. It loads nothing
// from anywhere, and a policy that it carries has the browser refuse to.
//
// dfld serves it, and it then asks the daemon that served it for news. With a
// document in it, it shows that document and asks nobody: so dflsim writes it
// for a finished run. docs/page.md says what it shows, docs/schema/page.json
// what it reads.
#ifndef DFL_PAGE_PAGE_HTML_H_
#define DFL_PAGE_PAGE_HTML_H_

#include <string>

#include "absl/strings/string_view.h"

namespace dfl::page {

// The page without a document. The same for as long as the process lives.
const std::string& Html();

// What the page may do, as the header Content-Security-Policy: run its own
// script, known by its hash, and talk to the server that it came from.
const std::string& SecurityPolicy();

// A file of its own: the page with `document`, which is JSON in UTF-8.
std::string HtmlWith(absl::string_view document);

}  // namespace dfl::page

#endif  // DFL_PAGE_PAGE_HTML_H_
