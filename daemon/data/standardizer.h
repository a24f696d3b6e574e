// x -> (x / divide - mean) / std, with one mean and std for all values, one a
// channel or one a feature. Where `divide` is not given, bytes are divided by
// 255 and floats are not. Feature j of a data set that
// does not vary gets std 1, so it becomes 0 and not NaN.
#ifndef DFL_DATA_STANDARDIZER_H_
#define DFL_DATA_STANDARDIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/data/dataset.h"

namespace dfl {
namespace data {

// A value; const methods are thread-safe.
class Standardizer {
 public:
  enum class Per { kAll, kChannel, kFeature };

  // Only divides; 0: bytes by 255, floats not. divide >= 0 (checked).
  explicit Standardizer(double divide = 0);

  // From the rows of `view` (a node's own training rows): mean and population
  // std, summed in row order in double, so the same rows give the same bits.
  // kChannel: the first extent of the shape is the channel.
  // Errors: INVALID_ARGUMENT when the view is empty, or float32 does not hold a
  // mean or std.
  static absl::StatusOr<Standardizer> FromRows(const DatasetView& view, Per per,
                                               double divide = 0);

  // From given numbers: one pair, or one a channel, or one a feature, in the
  // units after the division. A std of 0 counts as 1.
  // Errors: INVALID_ARGUMENT for different or zero counts, a mean or std that
  // is not finite, a negative std; names `source` (a file, a plan's key).
  static absl::StatusOr<Standardizer> FromValues(std::vector<float> mean,
                                                 std::vector<float> std,
                                                 const std::string& source,
                                                 double divide = 0);

  // From a CSV file (.gz too) whose header has the columns mean and std, with
  // one line for each feature, in order. A column `feature`, if present, counts
  // 0, 1, 2, ... (checked); other columns are ignored.
  // Errors: as the readers; INVALID_ARGUMENT when there are not `features`
  // lines.
  static absl::StatusOr<Standardizer> FromCsv(const std::string& path,
                                              int64_t features,
                                              double divide = 0);

  // Whether it can be used for rows of this data set.
  // Errors: INVALID_ARGUMENT when the counts are not 1, channels or features.
  absl::Status CheckFits(const Dataset& dataset) const;

  // [1], [channels] or [features]; empty for the identity.
  const std::vector<float>& mean() const { return mean_; }
  const std::vector<float>& std() const { return std_; }

  // What raw values of this data set are divided by.
  double DivideOf(const Dataset& dataset) const {
    return EffectiveDivide(divide_, dataset.has_bytes());
  }
  // `divide`, or where it is 0 the default for bytes or for floats.
  static double EffectiveDivide(double divide, bool bytes) {
    return divide > 0 ? divide : bytes ? 255.0 : 1.0;
  }

 private:
  Standardizer(std::vector<float> mean, std::vector<float> std, double divide);

  double divide_;
  std::vector<float> mean_;
  std::vector<float> std_;
};

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_STANDARDIZER_H_
