// What others see of the daemon: metrics, probes, log and checks. It looks at
// the node on the loop, five times a second, and answers from that on other
// threads.
#ifndef DFL_APP_EYES_EYES_H_
#define DFL_APP_EYES_EYES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/eyes/measured_transport.h"
#include "daemon/app/eyes/step_meter.h"
#include "daemon/app/logger.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/backend.h"
#include "daemon/control/observer.h"
#include "daemon/web/health.h"
#include "daemon/web/http_server.h"
#include "daemon/web/latest.h"
#include "daemon/web/meters.h"
#include "daemon/web/sample.h"

namespace dfl::app {

struct EyesOptions {
  std::string state_dir;
  config::WebSettings web;
  int64_t compute_threads = 0;  // of the settings
  bool on_network = false;      // the node is to have a certificate with tls
  absl::Duration period;        // between two looks
};

// Thread-safe, but for what says otherwise.
class Eyes final : public control::Observer {
 public:
  // All outlive it.
  Eyes(EyesOptions options, EventLoop& loop, EventHub& events, Logger& log,
       control::Backend& backend, const MeasuredTransport& transport,
       web::Meters& meters, StepMeter& steps);
  ~Eyes() override;

  // Looks at the node, which has just published its status. `frozen`: what of
  // the training is, "": nothing. On the loop.
  void Look(control::DaemonStatus status, std::string frozen);

  // Serves probes and metrics over HTTP where the settings have an address.
  // `add` registers more routes; may be null. Not on the loop.
  // Errors: as web::HttpServer::Bind, under the setting's name.
  absl::Status Serve(const std::function<void(web::HttpServer&)>& add);
  // Where it serves; empty: nowhere.
  std::vector<std::string> addresses() const;

  // From here on the node is not ready. Idempotent.
  void SetStopping() { stopping_.store(true); }
  // Serves no more. Not on the loop.
  void Stop();

  // For gRPC's health service.
  std::map<std::string, bool> Serving() const;

  // control::Observer
  std::string Metrics() override;
  control::LogPart Log(const control::LogQuery& query) override {
    return log_.tail().Read(query);
  }
  control::LogLevels Levels() override { return log_.Levels(); }
  void SetLevel(control::LogLevel level, absl::Duration time) override;
  void ResetLevel() override { log_.ResetLevel(); }
  std::vector<control::Finding> Diagnose() override;

 private:
  web::Health CheckNow() const;
  void CountBytes(const runtime::NodeStatus& node);
  std::vector<std::string> NotReady(const control::DaemonStatus& status) const;

  const EyesOptions options_;
  EventLoop& loop_;
  Logger& log_;
  control::Backend& backend_;
  const MeasuredTransport& transport_;
  web::Meters& meters_;
  web::Latest<web::Sample> latest_;
  std::atomic<bool> stopping_{false};

  // On the loop.
  std::map<std::string, web::Traffic> bytes_;
  web::Traffic counted_;  // what is in bytes_
  std::map<std::string, int64_t> members_;
  int64_t looks_ = 0;
  absl::Time looked_ = absl::InfinitePast();
  int64_t checkpoint_step_ = 0;
  std::optional<absl::Time> checkpoint_at_;

  std::unique_ptr<web::HttpServer> server_;              // null: none
  std::unique_ptr<control::Subscription> subscription_;  // last: ends first
};

}  // namespace dfl::app

#endif  // DFL_APP_EYES_EYES_H_
