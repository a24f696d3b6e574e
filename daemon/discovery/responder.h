// One multicast DNS stack that announces a service and browses for others:
// Avahi's daemon, or Avahi's library in this process. Room-internal.
//
// All on one thread, the one that iterates the poll.
#ifndef DFL_DISCOVERY_RESPONDER_H_
#define DFL_DISCOVERY_RESPONDER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "avahi-common/watch.h"
#include "daemon/discovery/mdns_service.h"

namespace dfl::discovery {

struct ResponderOptions {
  const AvahiPoll* poll = nullptr;  // outlives it
  // Announced unless it has no addresses.
  MdnsService service;
  // A service is there, or says something else than before.
  std::function<void(const MdnsKey& key, std::vector<std::string> txt)> found;
  std::function<void(const MdnsKey& key)> gone;
};

class Responder {
 public:
  virtual ~Responder() = default;  // says goodbye

  // Not OK: it is of no use any more, and why.
  virtual absl::Status state() const = 0;

  // Once a second or so: asks again for what was not answered.
  virtual void AskAgain() = 0;
};

// Errors: UNAVAILABLE: no daemon answers on this machine.
absl::StatusOr<std::unique_ptr<Responder>> ConnectToAvahi(
    ResponderOptions options);

// Errors: UNAVAILABLE: no socket of mDNS can be had.
absl::StatusOr<std::unique_ptr<Responder>> EmbedAvahi(ResponderOptions options);

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_RESPONDER_H_
