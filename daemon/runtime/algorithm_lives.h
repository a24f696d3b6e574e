// The algorithm's lives: it begins when a run does, and anew when the model
// under it is replaced or the plan names another algorithm.
//
// Loop only.
#ifndef DFL_RUNTIME_ALGORITHM_LIVES_H_
#define DFL_RUNTIME_ALGORITHM_LIVES_H_

#include <cstdint>
#include <optional>

#include "daemon/core/algorithm/pace.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

class AlgorithmLives {
 public:
  // All must outlive it.
  AlgorithmLives(OwnState& own, Exchange& exchange, Presence& presence,
                 Training& training, Joining& joining)
      : own_(own),
        exchange_(exchange),
        presence_(presence),
        training_(training),
        joining_(joining) {}

  // Ends the present one and begins the plan's at iteration `step`. It knows
  // nothing of what was before, of peers or of mass, and its first round waits
  // for nobody. `pace`: how far the model has come; nullopt: see core::Started,
  // as for `idle`.
  void Restart(int64_t step, std::optional<core::Pace> pace = std::nullopt,
               int64_t idle = 0);
  // As Restart, but it is as it was when `checkpoint` was taken, whose model is
  // in place and whose plan is in force. Mass goes on on those edges whose two
  // ends agree (MassExchange). Where this node has exchanged mass since its
  // start, in the tracker epoch `before`, none does: a new epoch begins. 0: it
  // has not.
  // Errors: as Algorithm::ImportState; End is to be called then.
  absl::Status Resume(const Checkpoint& checkpoint, uint64_t before = 0);
  // The same where the present one is, with what it has counted.
  void GoOn();
  // Ends it with all it had under way. There is none afterwards.
  void End();

 private:
  void Make(int64_t step);
  // Ends the present one; the next may be made.
  void MakeRoom();
  // Tells the one that was made of all there is.
  void Introduce();

  OwnState& own_;
  Exchange& exchange_;
  Presence& presence_;
  Training& training_;
  Joining& joining_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_ALGORITHM_LIVES_H_
