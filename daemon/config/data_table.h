// The settings of the section data. Room-internal: settings_table.h has them
// all.
#ifndef DFL_CONFIG_DATA_TABLE_H_
#define DFL_CONFIG_DATA_TABLE_H_

#include <vector>

#include "daemon/config/settings_table.h"

namespace dfl::config {

std::vector<Setting> DataTable();
std::vector<Setting> StandardiseTable();
std::vector<Setting> PartitionTable();

}  // namespace dfl::config

#endif  // DFL_CONFIG_DATA_TABLE_H_
