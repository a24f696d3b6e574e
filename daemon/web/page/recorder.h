// What the page knows of the past: the points of its charts, and since when a
// peer has given nothing.
#ifndef DFL_WEB_PAGE_RECORDER_H_
#define DFL_WEB_PAGE_RECORDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/page/history.h"
#include "daemon/runtime/status.h"

namespace dfl::web {

// What a status comes to in the charts, `at_s` seconds after the daemon's
// start.
page::Point PointOf(const runtime::NodeStatus& status, double at_s);

// Thread-compatible. It remembers the peers of the last status only.
class Recorder {
 public:
  // `at_s` rises.
  void Take(const runtime::NodeStatus& status, double at_s);

  std::vector<page::Point> History() const { return history_.All(); }

  // Seconds before `at_s` at which the last bytes, and the last whole model,
  // came from a peer; none: since this daemon started, none did.
  struct Age {
    std::optional<double> heard_s;
    std::optional<double> model_s;
  };
  std::map<NodeId, Age> Ages(double at_s) const;

 private:
  struct Seen {
    int64_t bytes = 0;
    int64_t models = 0;
    std::optional<double> bytes_at_s;
    std::optional<double> models_at_s;
  };

  page::History history_;
  std::map<NodeId, Seen> peers_;
};

}  // namespace dfl::web

#endif  // DFL_WEB_PAGE_RECORDER_H_
