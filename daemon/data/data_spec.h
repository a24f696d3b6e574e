// What to read and how: the data section of a node's settings, as a struct.
#ifndef DFL_DATA_DATA_SPEC_H_
#define DFL_DATA_DATA_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dfl {
namespace data {

enum class Format {
  kIdx,      // paths: images, labels. Unsigned bytes.
  kCifar10,  // paths: one or more binary batches.
  kLibsvm,   // paths: one or more text files.
  kCsv,      // paths: one or more text files with the same columns.
  kNpz,      // paths: one archive with features_key and labels_key.
  kNpy,      // paths: features, labels.
};

// "idx", "cifar10", "libsvm", "csv", "npz", "npy".
// Errors: INVALID_ARGUMENT lists what is allowed.
absl::StatusOr<Format> ParseFormat(absl::string_view name);
absl::string_view FormatName(Format format);

enum class Task { kClassification, kRegression };

enum class Header {
  kAuto,  // the first line is one if a feature in it is not a number
  kYes,
  kNo,
  kSkip,  // the first line is skipped unread
};

// "auto", "yes", "no", "skip".
absl::StatusOr<Header> ParseHeader(absl::string_view name);

struct DataSpec {
  Format format = Format::kIdx;
  // Plain or gzip, recognised by content and not by name. (The members of an
  // archive are compressed inside it.)
  std::vector<std::string> paths;

  // Regression: libsvm, csv, npz, npy.
  Task task = Task::kClassification;

  // Number of classes; 0: the largest label + 1 (idx, npz, npy) or the number
  // of different labels (csv, libsvm). Set it when a node's own rows may lack a
  // class.
  int64_t classes = 0;
  // csv, libsvm: the spelling of class 0, 1, ...; another spelling is refused.
  // Empty: integers 0..classes-1 stand for themselves when `classes` is given,
  // else the values found in sorted order. Nodes that read different files must
  // give `label_values` or `classes`, or their numbers may not agree.
  std::vector<std::string> label_values;

  // libsvm: the dimension; 0: the largest index found. Elsewhere: checked
  // against the file when not 0.
  int64_t features = 0;
  // The shape of a row, e.g. {1, 8, 8}; empty: as the format says. Its product
  // must be the number of features.
  std::vector<int64_t> shape;
  // The expected number of rows; 0: any. Only this detects a text file or a
  // CIFAR batch that was cut between two rows.
  int64_t rows = 0;

  // csv.
  std::string label_column = "-1";  // a header's name, or an index; -1: last
  std::vector<std::string> drop_columns;  // likewise; not features
  Header header = Header::kAuto;
  char delimiter = ',';

  // npz.
  std::string features_key = "X";
  std::string labels_key = "y";

  // More bytes than this in memory (features, decompressed, as stored by
  // Dataset) are refused: a hostile or wrong file must not exhaust the machine.
  uint64_t max_bytes = uint64_t{4} << 30;
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_DATA_SPEC_H_
