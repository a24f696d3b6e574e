// Everything that lives while the daemon runs, and the order in which it is
// built and taken down.
#ifndef DFL_APP_TREE_H_
#define DFL_APP_TREE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/app/audit_log.h"
#include "daemon/app/control_backend.h"
#include "daemon/app/daemon.h"
#include "daemon/app/enrolling.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/eyes/eyes.h"
#include "daemon/app/eyes/measured_transport.h"
#include "daemon/app/eyes/step_meter.h"
#include "daemon/app/logger.h"
#include "daemon/app/network/finding.h"
#include "daemon/app/network/known_members.h"
#include "daemon/app/new_data/new_data.h"
#include "daemon/app/new_data/renewable_learners.h"
#include "daemon/app/orders.h"
#include "daemon/app/security.h"
#include "daemon/app/service/life_signs.h"
#include "daemon/app/service/reload.h"
#include "daemon/app/service/rest.h"
#include "daemon/app/views/quiet_watch.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/control_server.h"
#include "daemon/enrol/issuer.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/store/checkpoint_files.h"
#include "daemon/store/disk_files.h"
#include "daemon/store/node_state.h"
#include "daemon/web/meters.h"
#include "daemon/web/page/status_page.h"

namespace dfl::app {

// In the order in which it is built.
struct Tree {
  explicit Tree(const config::NodeSettings& settings)
      : log(settings.log, settings.name),
        loop("dfld-node"),
        events(log),
        steps(loop, meters),
        life(log),
        frozen_after(settings.compute.frozen_after) {}

  Logger log;
  std::unique_ptr<store::DiskFiles> files;
  store::NodeStateCodec codec;
  EventLoop loop;
  EventHub events;
  web::Meters meters;
  StepMeter steps;                     // on the loop
  LifeSigns life;                      // on the loop
  absl::Duration frozen_after;         // 0: never; on the loop
  std::unique_ptr<Security> security;  // null with `security: insecure`
  std::unique_ptr<Orders> orders;
  std::unique_ptr<exchange::GrpcTransport> transport;
  std::unique_ptr<MeasuredTransport> measured;  // the same, as the node has it
  std::vector<std::string> bound;               // addresses for peers
  std::string advertised;  // the one told to them; may be ""
  std::unique_ptr<Worker> worker;
  std::unique_ptr<store::CheckpointFiles> checkpoints;
  std::unique_ptr<Worker> checkpoint_worker;
  std::unique_ptr<runtime::LinkedNode> node;
  std::unique_ptr<Rest> rest;
  std::unique_ptr<runtime::PlanFollower> follower;
  std::unique_ptr<Finding> finding;
  std::unique_ptr<KnownMembers> known_members;
  std::unique_ptr<RenewableLearners> learners;
  std::unique_ptr<NewData> new_data;  // null: the node has no data
  std::unique_ptr<ControlBackend> backend;
  std::unique_ptr<Eyes> eyes;
  std::unique_ptr<web::StatusPage> page;  // null: nothing is served
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<control::ControlServer> control;
  std::unique_ptr<Enrolling> enrolling;
  std::unique_ptr<enrol::Issuer> issuer;
  QuietWatch quiet;  // on the loop
  std::function<void()> tick;
};

// Builds everything; `tree` is as far as it came when that fails.
absl::Status Build(const DaemonOptions& options, Tree& tree);

// Says that all is built: to the log, to the ready file and to systemd.
absl::Status TellReady(const DaemonOptions& options, Tree& tree);

// The settings were read again: hands on what can change while the daemon runs,
// and says what does. Not on the loop.
void PutInForce(const config::NodeSettings& settings,
                const SettingChanges& changes, Tree& tree);

// In reverse order of building. The node and the trainer end on the loop. Calls
// `at` with what it is about to wait for, before each wait.
void TakeDown(Tree& tree, const std::function<void(const char*)>& at);

}  // namespace dfl::app

#endif  // DFL_APP_TREE_H_
