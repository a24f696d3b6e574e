// The node's model as a file for programs on this box, written again and again
// while the node trains: `model.publish` of the settings.
//
// The file appears when it is complete, so a reader finds a whole model of one
// step at any time. What cannot be written is a warning in status and log; the
// run goes on.
#ifndef DFL_APP_MODELS_PUBLISHER_H_
#define DFL_APP_MODELS_PUBLISHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/logger.h"
#include "daemon/app/models/model_transfers.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/backend.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/node.h"
#include "daemon/runtime/status.h"

namespace dfl::app {

// How good a model is, the higher the better: its accuracy, or, for regression,
// its loss with another sign.
double ScoreOf(const ports::Evaluation& evaluation);

// Loop only, where nothing else is said.
class Publisher {
 public:
  // All must outlive it. `settings.path` is set. Any thread.
  Publisher(config::PublishSettings settings, EventLoop& loop,
            runtime::Node& node, ModelTransfers& transfers, EventHub& events,
            Logger& log);
  // Waits for the file that is being written; not on the loop.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Writes the model if that is due; called now and then.
  void Look(const runtime::NodeStatus& status);

  // Adds what went wrong to the warnings. Any thread.
  void Tell(control::DaemonStatus& status) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What a file that is there says of itself.
  struct Published {
    std::string run;
    std::optional<double> score;
  };

  // A model that is written.
  struct Version {
    int64_t life = 0;
    int64_t step = 0;
    std::optional<double> score;  // where the best one is written
  };

  control::ModelFileFormat format() const;
  Published ReadPublished() const;
  // Forgets the former model, if the node begins with another one: another run,
  // or another data contract.
  void BeginRun(const runtime::NodeStatus& status);
  void OnEvaluated(const ports::Evaluated& event);
  // Begins to write `snapshot`.
  void Write(runtime::SnapshotPtr snapshot, std::optional<double> score);
  // On the worker.
  absl::Status WriteFile(control::ModelSource& source) const;
  void OnWritten(const Version& version, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const config::PublishSettings settings_;
  EventLoop& loop_;
  runtime::Node& node_;
  ModelTransfers& transfers_;
  Logger& log_;

  std::string run_;  // of the model that was written last
  std::map<std::string, std::string>
      contract_;               // of that model; empty: unknown
  int64_t life_ = 0;           // of models that were begun
  int64_t written_step_ = -1;  // -1: none of the run
  absl::Time next_try_ = absl::InfinitePast();
  std::optional<double> best_;  // that is written, or being written
  bool busy_ = false;
  // The best model came while another one was written.
  runtime::SnapshotPtr waiting_;
  std::optional<double> waiting_score_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  mutable absl::Mutex mutex_;
  std::string fault_ ABSL_GUARDED_BY(mutex_);  // "": all is well

  std::unique_ptr<control::Subscription> subscription_;
  Worker writer_;  // last: stopped first
};

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_PUBLISHER_H_
