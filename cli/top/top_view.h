// What `dflctl top` shows: a row for each member, sorted and filtered, with the
// keys that change that. Text only: cli/top/full_screen.h draws it.
#ifndef DFL_CLI_TOP_TOP_VIEW_H_
#define DFL_CLI_TOP_TOP_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/network/survey.h"

namespace dfl::cli {

// One member in numbers; what is not known is nullopt.
struct TopRow {
  std::string node;
  std::string state;
  std::string phase;  // "-": it does not answer
  std::optional<int64_t> step;
  std::optional<double> steps_per_second;
  std::optional<double> loss;
  std::string score = "-";
  std::optional<double> score_value;
  int64_t mixing = 0;      // neighbours with whom models are exchanged
  int64_t neighbours = 0;  // of so many
  // Steps by which the neighbour that is furthest behind is behind.
  std::optional<int64_t> staleness;
  // Root mean square of the relative distances between the member's model and
  // those that came last from its neighbours.
  std::optional<double> consensus_distance;
  // Share of the bytes of dense models that were not sent.
  std::optional<double> saved;
  std::optional<double> age_seconds;  // of the report
  std::string note;                   // why it is as it is
};

TopRow ToTopRow(const MemberReport& report);
Json ToJsonValue(const TopRow& row);

// Names of what rows may be sorted by, as --sort takes them.
const std::vector<std::string>& TopSortNames();

// Keys that are no characters.
enum TopKey : int {
  kKeyUp = 1000,
  kKeyDown,
  kKeyPageUp,
  kKeyPageDown,
  kKeyEscape,
  kKeyBackspace,
  kKeyEnter,
};

class TopView {
 public:
  // `sort` is one of TopSortNames().
  TopView(std::string target, std::string sort, std::string filter);

  // The newest survey, or why there is none: then the former one stays, and the
  // reason is shown.
  void Take(const absl::StatusOr<Survey>& survey);

  // A character or a TopKey. False: the person wants to leave.
  bool OnKey(int key);

  // Exactly `height` lines of at most `width` characters, without control
  // characters. The third is the titles of the columns.
  std::vector<std::string> Lines(int width, int height) const;
  // The rows that the filter lets through, sorted.
  std::vector<TopRow> Rows() const;
  // The table alone, for where there is no screen.
  std::string Table() const;

 private:
  std::string Summary() const;
  std::string Hint() const;

  const std::string target_;
  size_t sort_ = 0;
  bool reverse_ = false;
  std::string filter_;
  bool typing_ = false;  // the filter
  bool paused_ = false;
  size_t first_ = 0;  // row at the top
  std::vector<TopRow> rows_;
  bool any_ = false;  // a survey came
  absl::Status error_;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_TOP_TOP_VIEW_H_
