// Model files out of the node and into it, for control and for publishing.
#ifndef DFL_APP_MODELS_MODEL_TRANSFERS_H_
#define DFL_APP_MODELS_MODEL_TRANSFERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/models/model_files.h"
#include "daemon/app/plan_taker.h"
#include "daemon/control/backend.h"
#include "daemon/runtime/node.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::app {

// Thread-safe, where nothing else is said.
class ModelTransfers {
 public:
  using SourceDone = control::Done<std::unique_ptr<control::ModelSource>>;

  // All must outlive it, but for what waits in `node`: see End.
  ModelTransfers(EventLoop& loop, runtime::Node& node, LearnerFactory& learners,
                 PlanTaker& plans)
      : loop_(loop), node_(node), learners_(learners), plans_(plans) {}

  // As control::Backend.
  void BeginExport(control::ModelFileFormat format, SourceDone done);
  absl::StatusOr<std::unique_ptr<control::ModelSink>> BeginImport(
      const control::ImportRequest& request);

  // `snapshot` of the present model as a file. `score` is as in ModelAbout.
  // Loop only.
  // Errors: as control::Backend::BeginExport.
  void MakeFile(control::ModelFileFormat format, runtime::SnapshotPtr snapshot,
                const std::string& score, const SourceDone& done);

  // What waits in the node, which may outlive this, finds nobody from here on.
  // On the loop.
  void End() { alive_.reset(); }

 private:
  EventLoop& loop_;
  runtime::Node& node_;
  LearnerFactory& learners_;
  PlanTaker& plans_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // on the loop
};

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_MODEL_TRANSFERS_H_
