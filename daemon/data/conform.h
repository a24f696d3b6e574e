// From a node's own data to the data of a run: the run's contract says which
// number each class has, in which order features come, how wide a row is and
// how raw values become inputs. What does not fit is refused.
#ifndef DFL_DATA_CONFORM_H_
#define DFL_DATA_CONFORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"

namespace dfl {
namespace data {

// The rows of `view` under `contract`: labels have the numbers of its classes,
// features its order, and rows its width. Features are shared with `view` where
// columns stay as they are, and copied where not.
// Errors: INVALID_ARGUMENT, with both sides: another task, a label that
// contract.classes lacks (with the place where it was first seen), other
// features, another shape.
absl::StatusOr<DatasetView> Conform(const DatasetView& view,
                                    const core::DataContract& contract);

// What becomes of raw values under `contract`. `train` is this node's part of
// the training rows, conformed: mean and std are of its rows where
// contract.input says kNode.
// Errors: as Standardizer; INVALID_ARGUMENT when the numbers of kNetwork or
// kGiven are missing.
absl::StatusOr<Standardizer> ScalingOf(const core::DataContract& contract,
                                       const DatasetView& train);

// Counts, sums and squares about the mean of the raw values of `view` divided
// by `divide`. Nothing for kNone.
core::Moments MomentsOf(const DatasetView& view, core::InputScaling::Per per,
                        double divide);

// Task, classes, features and shape of an offer. `test` may be null; its labels
// count, too. The rest is for the caller to fill in.
core::DataOffer OfferOf(const Dataset& train, const Dataset* test);

// `dataset`, whose rows are vectors of floats, with zeros behind each row until
// it has `width` values, which is not less than it has (checked). Copies the
// features.
Dataset Widened(const Dataset& dataset, int64_t width);

// `dataset` with its columns in the order of `names`, which are its own in
// another order (checked). Copies the features.
Dataset Reordered(const Dataset& dataset,
                  const std::vector<std::string>& names);

}  // namespace data
}  // namespace dfl

#endif  // DFL_DATA_CONFORM_H_
