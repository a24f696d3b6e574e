// The way in: from a DataSpec to a checked Dataset.
#ifndef DFL_DATA_LOAD_H_
#define DFL_DATA_LOAD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/dataset.h"

namespace dfl {
namespace data {

// Checks what can be checked without opening a file.
// Errors: INVALID_ARGUMENT names the field, its value and what is allowed.
absl::Status ValidateSpec(const DataSpec& spec);

// Reads the whole data set into memory. Blocks on the disk.
// Errors: those of ValidateSpec and readers.h; RESOURCE_EXHAUSTED when memory
// does not suffice.
absl::StatusOr<Dataset> Load(const DataSpec& spec);

// Whether the reader of pictures passes over an entry of that name: what file
// managers leave behind, and what is hidden.
bool IsClutter(absl::string_view name);

// The files in `folder`, with the names that Debian's dataset-fashion-mnist and
// the original MNIST give them.
DataSpec MnistTrainingSpec(absl::string_view folder);
DataSpec MnistTestSpec(absl::string_view folder);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_LOAD_H_
