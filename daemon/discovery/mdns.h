// Candidates on the local network, by multicast DNS (mdns_service.h): this node
// is announced there, and others of the same cluster are browsed for.
//
// Where the machine has an Avahi daemon it does that for all its programs;
// elsewhere, as in a container, Avahi's library does it in this process. The
// note says which.
#ifndef DFL_DISCOVERY_MDNS_H_
#define DFL_DISCOVERY_MDNS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/discovery/mdns_service.h"
#include "daemon/discovery/source.h"
#include "daemon/threads/loose_thread.h"

namespace dfl::discovery {

// Announce is thread-safe; Start and Stop are for one thread.
class MdnsSource final : public Source {
 public:
  // `service` must be valid; without addresses it is not announced. `note` is
  // for the log, and is called on the source's thread.
  MdnsSource(MdnsService service,
             std::function<void(bool warning, const std::string& text)> note);
  ~MdnsSource() override;
  MdnsSource(const MdnsSource&) = delete;
  MdnsSource& operator=(const MdnsSource&) = delete;

  const std::string& name() const override { return name_; }
  void Start(Tell tell) override;
  void Stop() override;

  // Announces other addresses from now on.
  void Announce(std::vector<std::string> addresses);

 private:
  class Browser;

  const std::string name_ = "mdns";
  const std::shared_ptr<Browser> browser_;
  std::unique_ptr<LooseThread> thread_;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_MDNS_H_
