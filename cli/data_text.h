// What a node's data are, as text and as JSON.
#ifndef DFL_CLI_DATA_TEXT_H_
#define DFL_CLI_DATA_TEXT_H_

#include <string>

#include "cli/console.h"
#include "client/types.h"

namespace dfl::cli {

// For a person: rows, classes with their rows, the first `features` features
// with their ranges, scaling, contract, warnings.
std::string DataText(const client::NodeData& data, int64_t features);

Json DataJson(const client::NodeData& data);

}  // namespace dfl::cli

#endif  // DFL_CLI_DATA_TEXT_H_
