// The two macros every function that returns absl::Status wants, and one
// helper that puts a place in front of a message.
#ifndef DFL_BASE_STATUS_MACROS_H_
#define DFL_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace dfl {

// `status` with "`prefix`: " in front of its message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status,
                             absl::string_view prefix) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace dfl

#define DFL_RETURN_IF_ERROR(expr)              \
  do {                                         \
    absl::Status dfl_status_ = (expr);         \
    if (!dfl_status_.ok()) return dfl_status_; \
  } while (false)

#define DFL_STATUS_CONCAT_INNER_(a, b) a##b
#define DFL_STATUS_CONCAT_(a, b) DFL_STATUS_CONCAT_INNER_(a, b)

// DFL_ASSIGN_OR_RETURN(auto x, F()) : x = *F(), or returns F()'s error.
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration
#define DFL_ASSIGN_OR_RETURN(lhs, expr) \
  DFL_ASSIGN_OR_RETURN_IMPL_(DFL_STATUS_CONCAT_(dfl_or_, __LINE__), lhs, expr)
#define DFL_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                               \
  if (!var.ok()) return var.status();              \
  lhs = std::move(var).value()
// NOLINTEND(bugprone-macro-parentheses)

#endif  // DFL_BASE_STATUS_MACROS_H_
