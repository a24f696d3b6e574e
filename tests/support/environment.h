// Numbers that a person gives a test by environment variables.
#ifndef DFL_TESTS_SUPPORT_ENVIRONMENT_H_
#define DFL_TESTS_SUPPORT_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace dfl {

// The variable's number; `otherwise` without it.
inline int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace dfl

#endif  // DFL_TESTS_SUPPORT_ENVIRONMENT_H_
