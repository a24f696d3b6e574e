// The table of `status` and `watch`, with one row for each node.
#ifndef DFL_CLI_STATUS_TABLE_H_
#define DFL_CLI_STATUS_TABLE_H_

#include <string>
#include <vector>

#include "cli/console.h"
#include "client/types.h"

namespace dfl::cli {

std::vector<std::string> StatusTitles();
std::vector<std::string> StatusRow(const client::DaemonStatus& status);

// "1000/4000", "1000".
std::string StepText(const client::NodeStatus& node);
// "2", "2 (3 waits)", "-".
std::string PlanText(const client::NodeStatus& node);

// A table with one row for each peer.
Table PeerTable(const std::vector<client::PeerStatus>& peers);

// The warnings and errors that an operator should see beside the table.
std::vector<std::string> StatusNotes(const client::DaemonStatus& status);

}  // namespace dfl::cli

#endif  // DFL_CLI_STATUS_TABLE_H_
