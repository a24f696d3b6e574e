// A daemon's status as JSON: the same document as that of `dflctl status -o
// json` for one target (docs/schema/common.json, "status"), made from the same
// lists of fields.
#ifndef DFL_WEB_PAGE_STATUS_JSON_H_
#define DFL_WEB_PAGE_STATUS_JSON_H_

#include <nlohmann/json.hpp>

#include "daemon/control/backend.h"

namespace dfl::web {

using Json = nlohmann::ordered_json;

Json StatusJson(const control::DaemonStatus& status);

}  // namespace dfl::web

#endif  // DFL_WEB_PAGE_STATUS_JSON_H_
