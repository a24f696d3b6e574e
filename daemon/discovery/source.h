// A source of candidate addresses: places where a daemon of this network may
// be. A candidate is no member: that takes a handshake with an admitted
// identity. So nothing of a source is trusted, and it may well name this node
// itself, or nobody.
#ifndef DFL_DISCOVERY_SOURCE_H_
#define DFL_DISCOVERY_SOURCE_H_

#include <functional>
#include <string>
#include <vector>

namespace dfl::discovery {

// What a source knows at a time.
struct Findings {
  std::vector<std::string> addresses;  // "host:port"; sorted, each once
  // Why that may be out of date or not all, for people; "": nothing is amiss.
  std::string trouble;

  friend bool operator==(const Findings&, const Findings&) = default;
};

class Source {
 public:
  // Is told all that the source knows, also where nothing has changed. Called
  // on a thread of the source, or from inside Start.
  using Tell = std::function<void(Findings findings)>;

  virtual ~Source() = default;  // Stop

  // What people call it: "peers", "dns", "file", "mdns".
  virtual const std::string& name() const = 0;

  // Starts to look, and to call `tell`. Once.
  virtual void Start(Tell tell) = 0;

  // After it returns `tell` is not called any more. Takes a second at most.
  // Idempotent; not from inside `tell`.
  virtual void Stop() = 0;
};

}  // namespace dfl::discovery

#endif  // DFL_DISCOVERY_SOURCE_H_
