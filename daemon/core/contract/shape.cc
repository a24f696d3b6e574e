#include "daemon/core/contract/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace dfl::core {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t Product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (extent < 1 || extent > (int64_t{1} << 40) / product) return 0;
    product *= extent;
  }
  return product;
}

}  // namespace dfl::core
