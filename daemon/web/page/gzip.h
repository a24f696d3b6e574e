// Answers in gzip for those who take it: a page of 130 kB is 40 then.
#ifndef DFL_WEB_PAGE_GZIP_H_
#define DFL_WEB_PAGE_GZIP_H_

#include <string>

#include "absl/strings/string_view.h"
#include "daemon/web/http_server.h"

namespace dfl::web {

// `data` in gzip (RFC 1952); "" where there is no memory for it.
std::string Gzip(absl::string_view data);

// Whether who asks takes gzip (RFC 9110, 12.5.3).
bool TakesGzip(const HttpRequest& request);

// Puts gzip in place of the body, where it is taken and worth while.
void Compress(const HttpRequest& request, HttpResponse& response);

}  // namespace dfl::web

#endif  // DFL_WEB_PAGE_GZIP_H_
