// Our own models, written with LibTorch's operators: linear, logistic, svm,
// mlp, cnn, resnet20, resnet18.
#ifndef DFL_LEARNER_MODELS_H_
#define DFL_LEARNER_MODELS_H_

#include <c10/core/Device.h>

#include <memory>

#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/module.h"

namespace dfl::learner {

// `spec.kind` is not kTorchScript. Tensors hold no values until they are bound.
std::unique_ptr<Module> BuildModel(const ResolvedSpec& spec, at::Device device);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_MODELS_H_
