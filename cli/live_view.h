// What `watch` draws on a terminal: a table with a progress bar for each node,
// and the latest events. Each picture replaces the one before.
#ifndef DFL_CLI_LIVE_VIEW_H_
#define DFL_CLI_LIVE_VIEW_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/types.h"

namespace dfl::cli {

class LiveView {
 public:
  // Hides the cursor until the end.
  LiveView(std::ostream& out, std::vector<std::string> targets, bool color);
  // Leaves the last picture and the cursor below it.
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void Take(size_t index, const client::WatchUpdate& update);
  void Take(size_t index, const absl::Status& status);

  // `width` columns; longer lines are cut, not wrapped.
  void Draw(int width);

  // The picture as lines, for tests.
  std::vector<std::string> Lines() const;

 private:
  struct Row {
    std::optional<client::DaemonStatus> status;
    absl::Status error;
  };

  std::ostream& out_;
  const std::vector<std::string> targets_;
  const bool color_;
  std::vector<Row> rows_;
  std::deque<std::string> events_;
  size_t drawn_ = 0;  // lines on the screen
};

// "box-1: phase-changed: training -> paused".
std::string EventLine(const std::string& node, const client::Event& event);

}  // namespace dfl::cli

#endif  // DFL_CLI_LIVE_VIEW_H_
