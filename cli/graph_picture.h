// The graph of a plan as a picture: in characters for a terminal, or as SVG or
// PNG by Graphviz.
#ifndef DFL_CLI_GRAPH_PICTURE_H_
#define DFL_CLI_GRAPH_PICTURE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/console/topology_text.h"

namespace dfl::cli {

// Up to 24 nodes stand on an ellipse, with dotted edges; < > ^ v stand at the
// end of a directed edge. More nodes are a matrix: the row of a node has a #
// for each node that it sends to.
std::string GraphText(const console::TopologyReport& report);

// The graph in Graphviz's language, with a layout that fits `kind`, the
// topology's kind.
std::string GraphDot(const console::TopologyReport& report,
                     const std::string& kind);

// Has Graphviz draw `dot`. `format` is "svg" or "png". `program` is the
// program's name or path.
// Errors: NOT_FOUND when there is no such program, and names the package;
// INTERNAL when it fails, with its words.
absl::StatusOr<std::string> DrawGraph(const std::string& dot,
                                      const std::string& format,
                                      const std::string& program = "dot");

}  // namespace dfl::cli

#endif  // DFL_CLI_GRAPH_PICTURE_H_
