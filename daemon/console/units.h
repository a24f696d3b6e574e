// Numbers for people.
#ifndef DFL_CONSOLE_UNITS_H_
#define DFL_CONSOLE_UNITS_H_

#include <cstdint>
#include <string>

namespace dfl::console {

// "0 B", "999 B", "1.2 kB", "44.7 MB": powers of 1000, three digits.
std::string HumanBytes(int64_t bytes);

// "4 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
std::string HumanSeconds(double seconds);

// At most `digits` after the point: "0.833", "1.204".
std::string Fixed(double value, int digits);

// "[=====>    ]  45%" of `width` characters between the brackets.
std::string ProgressBar(double share, int width);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_UNITS_H_
