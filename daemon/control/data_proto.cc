#include "daemon/control/data_proto.h"

#include <string>

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

template <typename From, typename To>
void AddAll(const From& from, To& out) {
  out.Add(from.begin(), from.end());
}

void WriteReport(const DataReport& report, pb::GetDataResponse& out) {
  out.set_format(report.format);
  out.set_train_rows(report.train_rows);
  out.set_test_rows(report.test_rows);
  for (const ClassCount& from : report.classes) {
    pb::ClassCount& count = *out.add_classes();
    count.set_name(from.name);
    count.set_train_rows(from.train_rows);
    count.set_test_rows(from.test_rows);
  }
  for (const FeatureRange& from : report.features) {
    pb::FeatureRange& range = *out.add_features();
    range.set_name(from.name);
    range.set_min(from.min);
    range.set_max(from.max);
    range.set_mean(from.mean);
    range.set_missing(from.missing);
  }
  out.set_feature_count(report.feature_count);
  AddAll(report.warnings, *out.mutable_warnings());
}

}  // namespace

void ToProto(const core::DataContract& contract, pb::DataContract& out) {
  out.set_task(std::string(core::TaskName(contract.task)));
  AddAll(contract.classes, *out.mutable_classes());
  AddAll(contract.features, *out.mutable_features());
  AddAll(contract.shape, *out.mutable_shape());
  pb::InputScaling& input = *out.mutable_input();
  input.set_divide(contract.input.divide);
  input.set_per(std::string(core::PerName(contract.input.per)));
  input.set_over(std::string(core::OverName(contract.input.over)));
  AddAll(contract.input.mean, *input.mutable_mean());
  AddAll(contract.input.std, *input.mutable_std());
  out.set_loss(contract.loss);
  out.set_model(contract.model);
}

void ToProto(const NodeData& data, pb::GetDataResponse& out) {
  const core::DataOffer& offer = data.offer;
  ToProto(core::DataContract{offer.task, offer.classes, offer.features,
                             offer.shape, offer.input, offer.loss, offer.model},
          *out.mutable_offer());
  out.set_classes_stated(offer.classes_stated);
  AddAll(offer.class_places, *out.mutable_class_places());
  out.set_shape_is_at_least(offer.shape_is_at_least);
  out.set_divide_stated(offer.divide_stated);
  out.set_standardise_stated(offer.standardise_stated);
  if (offer.moments.count > 0) {
    pb::DataMoments& moments = *out.mutable_moments();
    moments.set_count(offer.moments.count);
    AddAll(offer.moments.sums, *moments.mutable_sums());
    AddAll(offer.moments.squares, *moments.mutable_squares());
  }
  if (data.contract.has_value()) {
    ToProto(*data.contract, *out.mutable_contract());
  }
  WriteReport(data.report, out);
}

}  // namespace dfl::control
