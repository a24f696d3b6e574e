// Whether the daemon moves, and whether it can take part: for probes.
//
//   live   the node's loop and the training move. It depends on nothing else,
//          neither peers nor disks: who is not live is to be started again.
//   ready  it has an identity, its listeners and its state. Whoever is not
//          ready is to be left alone until it is; the text says what is
//          missing.
#ifndef DFL_WEB_HEALTH_H_
#define DFL_WEB_HEALTH_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/web/http_server.h"
#include "daemon/web/sample.h"

namespace dfl::web {

// A loop that made no sample for so long is frozen. Mixing a model of several
// gigabytes takes seconds.
inline constexpr absl::Duration kLoopPatience = absl::Seconds(60);

struct HealthCheck {
  std::string name;   // "loop"
  std::string fault;  // "": it is well
};

struct Health {
  std::vector<HealthCheck> live;
  std::vector<HealthCheck> ready;  // beside those of live

  bool IsLive() const;
  bool IsReady() const;
};

// `sample` is the newest one, null before the first; `now` by the steady clock;
// `stopping`: the daemon goes down.
Health CheckHealth(const Sample* sample, absl::Time now, bool stopping);

// The answers to /livez and /readyz: 200 "ok", or 503 with a line for each
// fault. With ?verbose a line for each check.
HttpResponse AnswerLive(const Health& health, const HttpRequest& request);
HttpResponse AnswerReady(const Health& health, const HttpRequest& request);

}  // namespace dfl::web

#endif  // DFL_WEB_HEALTH_H_
