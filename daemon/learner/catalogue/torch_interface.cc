#include "daemon/learner/catalogue/torch_interface.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/learner/catalogue/batch_learner.h"

namespace dfl::learner {

std::string TorchInterfaceVersion() {
  const size_t sizes[] = {
      sizeof(std::string),           sizeof(absl::Status),
      sizeof(core::ModelSpec),       sizeof(core::DataContract),
      sizeof(data::Dataset),         sizeof(data::DatasetView),
      sizeof(data::Standardizer),    sizeof(LearnerData),
      sizeof(LearnerOptions),        sizeof(ModelIdentity),
      sizeof(BatchLearner),          sizeof(ports::ModelInfo),
      sizeof(ports::DataInfo),       sizeof(ports::GradientRequest),
      sizeof(ports::GradientResult), sizeof(ports::PredictRequest),
      sizeof(ports::Predictions),    sizeof(ports::Evaluation),
      sizeof(ports::BatchPosition),
  };
  return absl::StrCat("dfld ", DFL_VERSION, ", interface 1, compiler ",
                      __VERSION__, ", sizes ", absl::StrJoin(sizes, " "));
}

TorchScriptExporter* AsTorchScriptExporter(ports::Learner& learner) {
  return dynamic_cast<TorchScriptExporter*>(&learner);
}

}  // namespace dfl::learner
