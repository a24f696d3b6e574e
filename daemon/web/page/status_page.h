// The status page of a running daemon: what it serves, and the memory of the
// past that its charts are drawn from.
//
//   GET /                     the page
//   GET /page/live            a stream of `status` events, one a second, and at
//                             once where there is news
//   GET /page/history.json    the points of the charts
//   GET /page/members.json    who is in the network
//   GET /page/graph.json      whose neighbour is who
//   GET /page/plans.json      the versions of the plan
//   GET /page/plan.json?version=N
//   GET /page/events.json?from=N
//
// It only reads: there is no way to change anything. docs/schema has the form
// of each document.
#ifndef DFL_WEB_PAGE_STATUS_PAGE_H_
#define DFL_WEB_PAGE_STATUS_PAGE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/web/http_server.h"
#include "daemon/web/page/recorder.h"

namespace dfl::web {

// Thread-safe. It reads published copies on threads of its own and of the
// server; the node's loop never waits for it.
class StatusPage {
 public:
  // Begins to record. `backend` must outlive it.
  explicit StatusPage(control::Backend& backend);
  // After the server has stopped.
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // Before the server starts, which this object must outlive.
  void Register(HttpServer& server);

 private:
  void Record() ABSL_LOCKS_EXCLUDED(mutex_);
  double Now() const;
  std::string LiveJson() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Live(EventStream& out) const;

  control::Backend& backend_;
  const absl::Time started_;  // by the steady clock
  mutable absl::Mutex mutex_;
  SteadyCondVar ended_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  Recorder recorder_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last
};

}  // namespace dfl::web

#endif  // DFL_WEB_PAGE_STATUS_PAGE_H_
