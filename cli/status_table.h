// The table of `status` and `watch`, with one row for each node.
#ifndef DFL_CLI_STATUS_TABLE_H_
#define DFL_CLI_STATUS_TABLE_H_

#include <string>
#include <vector>

#include "cli/console.h"
#include "client/types.h"

namespace dfl::cli {

// `wide`: with more columns behind the others.
std::vector<std::string> StatusTitles(bool wide = false);
std::vector<std::string> StatusRow(const client::DaemonStatus& status,
                                   bool wide = false);

// "83%": the bytes that compression kept off the network, of what the models
// sent would have taken; "-": none was sent.
std::string SavedText(const client::NodeStatus& node);

// "1000/4000", "1000".
std::string StepText(const client::NodeStatus& node);
// "40/160", or "40" without a limit.
std::string RoundText(const client::NodeStatus& node);
// "3/4": neighbours with whom models are exchanged, of all.
std::string NeighbourText(const client::NodeStatus& node);
// The accuracy, "0.750", or where there are no classes "R2 0.871" or
// "MAE 0.1230"; "-": it was not evaluated.
std::string ScoreText(const client::NodeStatus& node);
// "2", "2 (3 waits)", "-".
std::string PlanText(const client::NodeStatus& node);

// A table with one row for each peer.
Table PeerTable(const std::vector<client::PeerStatus>& peers);

// The warnings and errors that an operator should see beside the table.
std::vector<std::string> StatusNotes(const client::DaemonStatus& status);

}  // namespace dfl::cli

#endif  // DFL_CLI_STATUS_TABLE_H_
