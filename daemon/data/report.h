// What was understood of the data, for a person to check: rows, classes with
// counts, features with ranges, scaling, and what looks wrong.
#ifndef DFL_DATA_REPORT_H_
#define DFL_DATA_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"

namespace dfl {
namespace data {

// Raw values of the training rows.
struct FeatureReport {
  std::string name;  // "" where the files have none
  double least = 0;
  double most = 0;
  double mean = 0;
  int64_t missing = 0;  // in all rows of the files
};

struct SetReport {
  int64_t rows = 0;
  int64_t dropped_rows = 0;           // for a missing value
  std::vector<int64_t> class_counts;  // [classes], classification
  // Of the targets, regression.
  double least = 0;
  double most = 0;
  double mean = 0;
};

struct DataReport {
  bool is_regression = false;
  std::vector<std::string> classes;  // how they are spelt, in order
  bool classes_stated = false;       // by data.label_values
  std::vector<int64_t> shape;        // of a row
  bool width_is_at_least = false;    // libsvm without data.features
  bool are_bytes = false;
  // One a feature, or of images one a channel.
  std::vector<FeatureReport> features;
  bool are_channels = false;
  SetReport train;
  std::optional<SetReport> test;
  std::string scaling;  // "bytes / 255, then ...", for people
  int64_t memory_bytes = 0;
  // A sentence each, with the cure: those that hold however values are scaled,
  // and all of them.
  std::vector<std::string> unscaled_warnings;
  std::vector<std::string> warnings;
};

// Looks at every value of both views. `test` may be null. `scaling` says what
// becomes of raw values.
DataReport Describe(const DatasetView& train, const DatasetView* test,
                    const Standardizer& scaling);

// The warnings of `report`, were raw values divided by `divide`, and
// standardised or not.
std::vector<std::string> WarningsUnder(const DataReport& report,
                                       bool standardised, double divide);

// Lines for a person; a warning is a line that starts with "warning: ".
std::string ReportText(const DataReport& report);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_REPORT_H_
