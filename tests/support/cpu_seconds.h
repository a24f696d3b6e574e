// For tests that work does not grow with the square of its input. What takes a
// second and would take half a minute is told apart on any machine.
#ifndef DFL_TESTS_SUPPORT_CPU_SECONDS_H_
#define DFL_TESTS_SUPPORT_CPU_SECONDS_H_

#include <ctime>

namespace dfl {

// Processor time that this process has used, in seconds. Other programs of the
// machine do not count.
inline double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace dfl

#endif  // DFL_TESTS_SUPPORT_CPU_SECONDS_H_
