// When data files are to be read anew, judged by looks at them (data_marks.h).
//
//   the rows in use are of marks A
//     a look finds B                     -> look again soon: somebody may write
//     the next look finds B as well      -> read
//       taken                            -> the rows in use are of marks B
//       refused                          -> rest; at every tenth look read once
//                                           more, since what kept the rows from
//                                           being taken may have changed
//     a look finds A again               -> as taken: nothing is wrong any more
//
// Pure: it knows no files, no clock and no thread. Thread-compatible.
#ifndef DFL_APP_NEW_DATA_DATA_WATCH_H_
#define DFL_APP_NEW_DATA_DATA_WATCH_H_

#include <optional>

#include "daemon/app/new_data/data_marks.h"

namespace dfl::app {

class DataWatch {
 public:
  enum class Next {
    kAsTaken,   // the files are those of the rows in use
    kRest,      // they were refused, and are as they were then
    kLookSoon,  // they have changed since the last look
    kRead,      // they are at rest, and not in use
  };
  static constexpr int kLooksBeforeRetry = 10;

  // `in_use`: the files as they were just before the rows in use were read.
  explicit DataWatch(DataMarks in_use) : taken_(in_use) {}

  Next Look(const DataMarks& found) {
    if (found == taken_) {
      seen_.reset();
      refused_.reset();
      return Next::kAsTaken;
    }
    if (refused_ == found) {
      seen_.reset();
      return ++looks_ % kLooksBeforeRetry == 0 ? Next::kRead : Next::kRest;
    }
    if (seen_ == found) return Next::kRead;
    seen_ = found;
    return Next::kLookSoon;
  }

  // What came of reading files that were of `marks` before and after. Neither
  // is called where they were not the same: then the next look tells.
  void SetTaken(const DataMarks& marks) {
    taken_ = marks;
    seen_.reset();
    refused_.reset();
  }
  void SetRefused(const DataMarks& marks) {
    if (refused_ != marks) looks_ = 0;
    refused_ = marks;
    seen_.reset();
  }

  const DataMarks& taken() const { return taken_; }

 private:
  DataMarks taken_;
  std::optional<DataMarks> seen_;  // at the last look, neither of the others
  std::optional<DataMarks> refused_;
  int looks_ = 0;  // at the refused ones
};

}  // namespace dfl::app

#endif  // DFL_APP_NEW_DATA_DATA_WATCH_H_
