// FrameRouter: the one place where the frames of all links come in. It hands
// each on, by its kind, to the one part that takes frames of that kind.
//
//   Links --frame of a peer--> FrameRouter --StateFrame, AskFrame ...--> node
//                                          --TransferBegin, Chunk ...--> models
//
// A new kind of frame needs a receiver: Connect() does not compile while some
// alternative of ports::Frame has no receiver, or more than one.
//
// What happens to links themselves goes to every observer, in the order in
// which Connect() names them.
#ifndef DFL_RUNTIME_LINKS_FRAME_ROUTER_H_
#define DFL_RUNTIME_LINKS_FRAME_ROUTER_H_

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "daemon/base/check.h"
#include "daemon/base/ids.h"
#include "daemon/ports/frames.h"
#include "daemon/runtime/links/links.h"

namespace dfl::runtime {

// Takes the frames of one kind.
template <typename F>
class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  // `from` is linked, and `frame` keeps the bounds of ports/frames.h; what it
  // says is untrusted.
  virtual void OnFrame(const NodeId& from, F frame) = 0;
};

// Takes the frames of several kinds.
template <typename... F>
class FrameReceivers : public FrameReceiver<F>... {
 public:
  using FrameReceiver<F>::OnFrame...;
};

// Is told what happens to links. See Links::Listener.
class LinkObserver {
 public:
  virtual ~LinkObserver() = default;
  virtual void OnPeerUp(const NodeId& peer, bool restarted) = 0;
  virtual void OnPeerDown(const NodeId& peer, const absl::Status& reason) = 0;
  virtual void OnPeerWritable(const NodeId& peer) = 0;
  virtual void OnAddressFailed(const std::string& address) = 0;
};

namespace internal {

template <typename F, typename R>
inline constexpr bool kReceives = std::is_convertible_v<R*, FrameReceiver<F>*>;

template <typename Frame>
struct FrameKinds;
template <typename... F>
struct FrameKinds<std::variant<F...>> {
  using Table = std::tuple<FrameReceiver<F>*...>;
  template <typename F1, typename... R>
  static constexpr int kReceiversOf = (0 + ... + (kReceives<F1, R> ? 1 : 0));
  template <typename... R>
  static constexpr bool kEachReceivedOnce =
      ((kReceiversOf<F, R...> == 1) && ...);
};

}  // namespace internal

// Whether each alternative of the variant `Frame` has exactly one receiver
// among the types `R`.
template <typename Frame, typename... R>
inline constexpr bool kEachKindReceivedOnce =
    internal::FrameKinds<Frame>::template kEachReceivedOnce<R...>;

// Loop only. Construct it before the Links whose listener it is, and connect it
// before the first link can come up.
class FrameRouter : public Links::Listener {
 public:
  // Registers every one of `parts` for the kinds of frames that it receives,
  // and as an observer when it is one. All must outlive the last call to this
  // object. Call it once.
  template <typename... R>
  void Connect(R&... parts) {
    static_assert(kEachKindReceivedOnce<ports::Frame, R...>,
                  "every kind of frame needs exactly one receiver");
    (Register(parts), ...);
  }

  // `note` is called for every frame, before it is handed on.
  void NoteFrames(std::function<void(const NodeId& from)> note) {
    note_ = std::move(note);
  }

  // Links::Listener
  void OnPeerUp(const NodeId& peer, bool restarted) override {
    for (LinkObserver* o : observers_) o->OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override {
    for (LinkObserver* o : observers_) o->OnPeerDown(peer, reason);
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame frame) override {
    if (note_) note_(peer);
    std::visit(
        [&](auto& f) {
          using F = std::decay_t<decltype(f)>;
          auto* receiver = std::get<FrameReceiver<F>*>(table_);
          DFL_CHECK(receiver != nullptr);
          receiver->OnFrame(peer, std::move(f));
        },
        frame);
  }
  void OnPeerWritable(const NodeId& peer) override {
    for (LinkObserver* o : observers_) o->OnPeerWritable(peer);
  }
  void OnAddressFailed(const std::string& address) override {
    for (LinkObserver* o : observers_) o->OnAddressFailed(address);
  }

 private:
  using Table = internal::FrameKinds<ports::Frame>::Table;

  template <typename R>
  void Register(R& part) {
    std::apply(
        [&](auto*&... entry) {
          const auto set = [&](auto*& e) {
            if constexpr (std::is_convertible_v<
                              R*, std::remove_reference_t<decltype(e)>>) {
              e = &part;
            }
          };
          (set(entry), ...);
        },
        table_);
    if constexpr (std::is_convertible_v<R*, LinkObserver*>) {
      observers_.push_back(&part);
    }
  }

  Table table_{};
  std::vector<LinkObserver*> observers_;
  std::function<void(const NodeId&)> note_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_LINKS_FRAME_ROUTER_H_
