// Assertions for our own bugs. Bad input is never asserted: it is an error.
//
// DFL_CHECK(condition) << is not offered on purpose: the condition and its
// place are what a bug report needs, and the abort leaves a core.
#ifndef DFL_BASE_CHECK_H_
#define DFL_BASE_CHECK_H_

namespace dfl {

// Prints `condition` and its place on stderr and aborts.
[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

}  // namespace dfl

#define DFL_CHECK(condition)                              \
  do {                                                    \
    if (!(condition)) {                                   \
      ::dfl::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                     \
  } while (false)

#endif  // DFL_BASE_CHECK_H_
