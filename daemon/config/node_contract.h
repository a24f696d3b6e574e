// Between a node's rows and the data contract of a run: what rows and settings
// say of it, and the rows in the form that it wants.
#ifndef DFL_CONFIG_NODE_CONTRACT_H_
#define DFL_CONFIG_NODE_CONTRACT_H_

#include "absl/status/statusor.h"
#include "daemon/config/node_data.h"
#include "daemon/config/node_settings.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/contract/data_section.h"

namespace dfl::config {

// What `data`, read by `settings`, says of the contract under a plan that
// states `section`; without loss and model. Looks at all training rows where
// the section leaves mean and std over the network open.
core::DataOffer MakeOffer(const NodeData& data, const DataSettings& settings,
                          const core::DataSection& section);

// Labels with the numbers of `contract`, columns in its order, and its scaling.
// Shares what stays as it is.
// Errors: as data::Conform and data::ScalingOf.
absl::StatusOr<NodeData> ConformTo(const core::DataContract& contract,
                                   const NodeData& data);

}  // namespace dfl::config

#endif  // DFL_CONFIG_NODE_CONTRACT_H_
