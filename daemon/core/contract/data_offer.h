// What one node's data and settings say of the data contract, before a plan
// fixes anything.
#ifndef DFL_CORE_CONTRACT_DATA_OFFER_H_
#define DFL_CORE_CONTRACT_DATA_OFFER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/core/contract/data_contract.h"

namespace dfl::core {

// Of the training rows' raw values divided by InputScaling::divide, so that
// means and variances over all nodes can be worked out: 1, channels or features
// sums each.
struct Moments {
  int64_t count = 0;  // values in each sum
  std::vector<double> sums;
  // Of (value - sums/count)^2: about the node's own mean, so that nothing is
  // lost where values are large and vary little.
  std::vector<double> squares;

  friend bool operator==(const Moments&, const Moments&) = default;
};

struct DataOffer {
  Task task = Task::kClassification;
  // The spellings of labels found in the node's files, training and test:
  // integers by value, then words. Or what the settings list, in that order.
  std::vector<std::string> classes;
  bool classes_stated = false;  // by the settings: the order binds
  // Where each was seen first, "b.csv: line 17, column 4"; [classes] or empty.
  std::vector<std::string> class_places;
  std::vector<std::string> features;
  std::vector<int64_t> shape;
  // The files name no width (LIBSVM): `shape` is what they need at least.
  bool shape_is_at_least = false;
  // As the plan's section and, where that is silent, the settings say. What the
  // settings state themselves is a disagreement where the plan says otherwise;
  // a default gives way to the plan.
  InputScaling input;
  bool divide_stated = false;
  bool standardise_stated = false;
  // Where input.over is kNetwork and the plan gives no numbers.
  Moments moments;
  std::string loss;
  std::string model;  // 64 hex digits; "": there is no model yet

  friend bool operator==(const DataOffer&, const DataOffer&) = default;
};

}  // namespace dfl::core

#endif  // DFL_CORE_CONTRACT_DATA_OFFER_H_
