// The page's files, as CMake has put them into the program. Room-internal.
#ifndef DFL_PAGE_PAGE_PARTS_H_
#define DFL_PAGE_PAGE_PARTS_H_

namespace dfl::page {

extern const char kShell[];   // HTML, with marks for the others
extern const char kStyle[];   // CSS
extern const char kScript[];  // JavaScript, with uPlot and its licence

}  // namespace dfl::page

#endif  // DFL_PAGE_PAGE_PARTS_H_
