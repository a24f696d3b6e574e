#include "daemon/base/ids.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace dfl {

absl::Status ValidateNodeName(absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError("a node name must not be empty");
  }
  if (name.size() > 63) {
    return absl::InvalidArgumentError(
        absl::StrCat("node name \"", name.substr(0, 20), "...\" has ",
                     name.size(), " characters; at most 63 are allowed"));
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool ok = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                    (i > 0 && (c == '-' || c == '_' || c == '.'));
    if (!ok) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node name \"", name, "\": character ", i + 1,
          " is not allowed; use letters, digits, '-', '_' and '.', starting "
          "with a letter or digit"));
    }
  }
  return absl::OkStatus();
}

}  // namespace dfl
