#ifndef DFL_APP_VERSION_H_
#define DFL_APP_VERSION_H_

namespace dfl::app {

// Of the program; DFL_VERSION comes from the top CMakeLists.txt.
inline constexpr char kVersion[] = DFL_VERSION;

}  // namespace dfl::app

#endif  // DFL_APP_VERSION_H_
