// dfld: see daemon/app/daemon.h. The only file that ties app to LibTorch.
#include "daemon/app/daemon.h"
#include "daemon/app/torch_learner_factory.h"

int main(int argc, char** argv) {
  return dfl::app::DaemonMain(argc, argv, dfl::app::OpenTorchLearnerFactory);
}
