// Hands an event to the handler of its kind:
//
//   Dispatch(
//       std::move(event), [&](const Started& e) { OnStarted(e.step); },
//       [&](StepBegins) { OnStepBegins(actions); },
//       Ignored<Skipped, EpochBegins>());
//
// Each kind of event must have exactly one handler or be among the ignored
// ones. A handler must take exactly one kind. Anything else does not compile,
// so a new kind of event stops every dispatch until it says what becomes of it.
#ifndef DFL_CORE_ALGORITHM_DISPATCH_H_
#define DFL_CORE_ALGORITHM_DISPATCH_H_

#include <type_traits>
#include <utility>
#include <variant>

namespace dfl::core {

template <typename Kind>
struct IgnoredKind {
  void operator()(const Kind& /*event*/) const {}
};

// The kinds of events that nothing is done about.
template <typename... Kinds>
struct Ignored : IgnoredKind<Kinds>... {
  using IgnoredKind<Kinds>::operator()...;
};

template <typename Handler>
inline constexpr int kKindsMeant = 1;
template <typename... Kinds>
inline constexpr int kKindsMeant<Ignored<Kinds...>> = sizeof...(Kinds);

// The number of `Kinds` that `Handler` takes.
template <typename Handler, typename... Kinds>
inline constexpr int kKindsTaken =
    (0 + ... + (std::is_invocable_v<const Handler&, Kinds> ? 1 : 0));

// The number of `Handlers` that take `Kind`.
template <typename Kind, typename... Handlers>
inline constexpr int kTakers =
    (0 + ... + (std::is_invocable_v<const Handlers&, Kind> ? 1 : 0));

// Whether `Handlers` may dispatch the variant `Events`.
template <typename Events, typename... Handlers>
inline constexpr bool kDispatches = false;
template <typename... Kinds, typename... Handlers>
inline constexpr bool kDispatches<std::variant<Kinds...>, Handlers...> =
    ((kTakers<Kinds, Handlers...> == 1) && ...) &&
    ((kKindsTaken<Handlers, Kinds...> == kKindsMeant<Handlers>) && ...);

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

// Calls the one of `handlers` that takes the kind of `event`, and moves it
// there.
template <typename... Kinds, typename... Handlers>
void Dispatch(std::variant<Kinds...> event, Handlers... handlers) {
  static_assert(kDispatches<std::variant<Kinds...>, Handlers...>,
                "each kind needs one handler, and each handler takes one kind");
  std::visit(Overloaded{std::move(handlers)...}, std::move(event));
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_DISPATCH_H_
