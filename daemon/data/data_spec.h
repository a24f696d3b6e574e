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
  kImages,   // paths: one or more folders, each with a subfolder a class.
};

// "idx", "cifar10", "libsvm", "csv", "npz", "npy", "images".
// Errors: INVALID_ARGUMENT lists what is allowed.
absl::StatusOr<Format> ParseFormat(absl::string_view name);
absl::string_view FormatName(Format format);

enum class Task { kClassification, kRegression };

enum class Header {
  kAuto,  // by comparing the first line with the lines below; refused if unclear
  kYes,
  kNo,
  kSkip,  // the first line is skipped unread
};

// "auto", "yes", "no", "skip".
absl::StatusOr<Header> ParseHeader(absl::string_view name);

// What a missing value becomes: an empty field, NA, N/A, NaN, ?, null or None
// in any case; in binary arrays NaN.
enum class Missing {
  kRefuse,
  kMean,  // the mean of its feature over the rows read
  kZero,
  kDrop,  // its row is left out
};

// Where an array of images keeps its channels.
enum class Layout {
  kAuto,  // as kNchw; an array that looks like the other one is refused
  kNchw,  // [rows, channels, height, width]
  kNhwc,  // [rows, height, width, channels]
};

// What the set read first (the training set) says of its columns; a second set
// is read to match.
struct ColumnMatch {
  std::vector<std::string> features;  // names in order; empty: unnamed
  std::string label;                  // csv: the label column's name, or ""
  std::vector<std::string> dropped;   // csv: names of columns that were dropped
  std::vector<float> fill;            // Missing::kMean: one a feature, or empty
};

struct DataSpec {
  Format format = Format::kIdx;
  // Plain or gzip, recognised by content and not by name. (The members of an
  // archive are compressed inside it.)
  std::vector<std::string> paths;

  // Regression: libsvm, csv, npz, npy.
  Task task = Task::kClassification;

  // Number of classes; more different labels than that are refused. 0: any
  // number. Integers that all lie in [0, classes) stand for themselves; other
  // labels are numbered in order, integers first. These numbers are the data
  // set's own: Conform gives each class the number that the run has for it.
  int64_t classes = 0;
  // The spelling of class 0, 1, ...; another spelling is refused.
  std::vector<std::string> label_values;

  // libsvm: the dimension; 0: the largest index found. Elsewhere: checked
  // against the file when not 0.
  int64_t features = 0;
  // Names of the features in order, where the files have none.
  std::vector<std::string> feature_names;
  // What raw values are divided by; 0: bytes of images by 255, others not.
  double divide = 0;
  Missing missing = Missing::kRefuse;  // csv, libsvm, npz, npy
  ColumnMatch match;
  // The shape of a row, e.g. {1, 8, 8}; empty: as the format says. Its product
  // must be the number of features.
  std::vector<int64_t> shape;
  // The expected number of rows; 0: any. Only this detects a text file or a
  // CIFAR batch that was cut between two rows.
  int64_t rows = 0;

  // csv.
  // An integer is an index (-1: the last column), all else a header's name.
  std::string label_column = "-1";
  std::vector<std::string> drop_columns;  // likewise; not features
  Header header = Header::kAuto;
  char delimiter = ',';

  // libsvm: the first index, 0 or 1.
  int64_t index_base = 1;

  // npz, npy.
  Layout layout = Layout::kAuto;
  // npz.
  std::string features_key = "X";
  std::string labels_key = "y";

  // images: {height, width} that every image is resized to; empty: none is, and
  // images of different sizes are refused.
  std::vector<int64_t> resize;
  // images: 1 makes all grey, 3 all coloured; 0: as they are, all of one kind.
  int64_t channels = 0;

  // More bytes than this in memory (features, decompressed, as stored by
  // Dataset) are refused: a hostile or wrong file must not exhaust the machine.
  uint64_t max_bytes = uint64_t{4} << 30;
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_DATA_SPEC_H_
