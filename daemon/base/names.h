// What error messages say of names and numbers.
#ifndef DFL_BASE_NAMES_H_
#define DFL_BASE_NAMES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace dfl {

// The shortest text that reads back as `value`.
std::string NumberText(double value);

// The entry of `known` with the smallest edit distance to `name`; "" when none
// is near enough to be worth naming. Serves every "did you mean". Looks at the
// first thousand or so of long lists, and at no name of kilobytes.
std::string NearestName(absl::string_view name,
                        absl::Span<const std::string> known);

// INVALID_ARGUMENT "`path`: "rign" is unknown; did you mean "ring"? allowed:
// complete, ring": the one form of every error about a name out of a list. A
// long name is cut, and of a long list the first fifty are shown.
absl::Status UnknownNameError(absl::string_view path, absl::string_view found,
                              absl::Span<const std::string> known);

}  // namespace dfl

#endif  // DFL_BASE_NAMES_H_
