// From the data section of settings to the rows of a node: the files are read
// once, and any number of nodes take their parts of what is in memory.
#ifndef DFL_CONFIG_NODE_DATA_H_
#define DFL_CONFIG_NODE_DATA_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/config/node_settings.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"

namespace dfl::config {

// All rows of the files. Copies share them.
struct DataFiles {
  data::DatasetView train;
  // Classes are numbered and columns ordered as train's.
  std::optional<data::DatasetView> test;
};

// Reads both sets, matches the test set's columns with the training set's by
// name, and numbers the classes of both together. Blocks on the disk.
// Errors: as data::Load; INVALID_ARGUMENT where the sets do not fit together.
// `section` ("data") is the path of the settings, for errors:
// "data.train.paths: ...".
absl::StatusOr<DataFiles> ReadDataFiles(const DataSettings& settings,
                                        absl::string_view section);

// What one node learns from.
struct NodeData {
  data::DatasetView train;
  std::optional<data::DatasetView> test;
  data::Standardizer standardizer;  // of both
};

// Part `index` of settings.partition.count parts of the training rows, the
// whole test set, and the standardisation that goes with that part. Costs an
// index list.
// Errors: as data::Partition and data::Standardizer, with the key in front.
absl::StatusOr<NodeData> TakePart(const DataFiles& files,
                                  const DataSettings& settings, int64_t index,
                                  absl::string_view section);

}  // namespace dfl::config

#endif  // DFL_CONFIG_NODE_DATA_H_
