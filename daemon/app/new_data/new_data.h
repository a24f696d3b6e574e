// New data in the data folder, taken up while the daemon runs.
//
//   thread dfld-data   looks at the files, and reads them when they have
//                      changed and are at rest (data_watch.h)
//   setup thread       builds the present model on the new rows, under the data
//                      contract in force, and gives it to the node
//   node loop          trains on them from the next boundary on
//
// Rows that cannot be taken change nothing: the node goes on with those that it
// has, and fault() says why.
#ifndef DFL_APP_NEW_DATA_NEW_DATA_H_
#define DFL_APP_NEW_DATA_NEW_DATA_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/new_data/data_marks.h"
#include "daemon/app/new_data/renewable_learners.h"
#include "daemon/app/plan_taker.h"
#include "daemon/app/worker.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/threads/loose_thread.h"

namespace dfl::app {

struct NewDataOptions {
  absl::Duration interval;  // between two looks; 0: it never looks
  // Before files that have changed are looked at once more.
  absl::Duration settle = absl::Seconds(1);
  // The files as they were just before the rows in use were read.
  DataMarks in_use;
  // Look at the files, and read them. They own all that they touch: reading
  // cannot be broken off, and may outlive everything else.
  std::function<DataMarks()> look;
  std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>()> read;
};

// Connect and Disconnect are for one thread, which is not the loop.
class NewData {
 public:
  // `learners` are those in use; they are replaced. `membership` may be null.
  // All must outlive it.
  NewData(NewDataOptions options, RenewableLearners& learners, EventLoop& loop,
          runtime::Membership* membership, ports::EventSink& events);
  ~NewData() { Disconnect(); }
  NewData(const NewData&) = delete;
  NewData& operator=(const NewData&) = delete;

  // Looks from here on. Once. Both must outlive what `setup` does; it is
  // stopped after Disconnect and before this goes.
  void Connect(PlanTaker& plans, Worker& setup);

  // Nobody looks any more, and nothing more is given to `setup`. A file that is
  // being read is left behind. Idempotent.
  void Disconnect();

  // Why data files that have changed are not taken up; "": there are none. Any
  // thread.
  std::string fault() const;

 private:
  class Looker;

  // On the setup thread.
  absl::Status Take(PlanTaker& plans, std::shared_ptr<LearnerFactory> rows);
  void Tell(bool warning, std::string text);

  const absl::Duration interval_;
  RenewableLearners& learners_;
  EventLoop& loop_;
  runtime::Membership* const membership_;
  ports::EventSink& events_;
  const std::shared_ptr<Looker> looker_;
  std::unique_ptr<LooseThread> thread_;  // null: nobody looks
};

}  // namespace dfl::app

#endif  // DFL_APP_NEW_DATA_NEW_DATA_H_
