#include "daemon/runtime/node.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/status_report.h"

namespace dfl::runtime {

using ports::Phase;

Node::Node(NodeOptions options, ports::Loop& loop, Links& links,
           ports::Worker& worker, ports::EventSink& events)
    : options_(std::move(options)),
      loop_(loop),
      links_(links),
      own_(
          options_.self, loop, events, *this,
          [this] {
            presence_.Tell();
            together_.Look();
          },
          [this] { VisitBoundary(); }, options_.forge),
      peers_(own_.run,
             [&links](const NodeId& peer) { return links.IsUp(peer); }),
      presence_(own_, peers_, links,
                [this](ports::StateFrame& state, const NodeId& to) {
                  exchange_.mass().Tell(state, to);
                }),
      silence_(loop, *this,
               [this] { return own_.run.plan().deadline.exchange; }),
      exchange_(options_.transfers, own_, peers_, presence_, links, loop,
                worker, events, first_model_),
      training_(own_, loop, events, options_.degraded_retry),
      evaluations_(own_, training_, loop, events),
      jumps_(own_, peers_, evaluations_, loop),
      joining_(options_.joining, loop, links, exchange_.transfers(),
               exchange_.asks().book(), peers_, own_.run, first_model_),
      lives_(own_, exchange_, presence_, training_, joining_),
      first_model_(own_, presence_, training_, joining_, lives_,
                   exchange_.rejections(), events),
      checkpointing_(options_.checkpoints, own_, exchange_, training_, loop,
                     events),
      resumption_(options_.checkpoints, checkpointing_, own_, peers_, links,
                  exchange_, presence_, training_, joining_, lives_,
                  first_model_, loop, events),
      restoration_(own_, checkpointing_, resumption_, evaluations_, training_,
                   exchange_, presence_, links),
      orders_(own_, evaluations_, joining_, lives_, first_model_, resumption_),
      plans_(own_, peers_, exchange_, presence_, training_, joining_, lives_,
             evaluations_, events),
      contracts_([this] { return own_.run.contract_or_null(); }, loop, links,
                 [this](const NodeId& from, const std::string& text) {
                   NoteBadMessage(from, text);
                 }),
      neighbourhood_(own_, peers_, links, contracts_, loop),
      together_(own_, peers_, neighbourhood_, loop, events) {
  own_.algorithm.SetTiming(options_.timing);
}

void Node::CopyModel(std::function<void(absl::StatusOr<SnapshotPtr>)> done) {
  if (!own_.model.initialised()) {
    done(absl::FailedPreconditionError(
        "the node has no model yet; start or import one first"));
    return;
  }
  if (own_.Settled()) return done(own_.TakeSnapshot());
  own_.boundary.PutOff(
      [this, done = std::move(done)] { done(own_.TakeSnapshot()); });
}

bool Node::TakeUpCheckpoint(ports::Phase phase) {
  if (!own_.phases.Is(Phase::kIdle) || own_.model.initialised() ||
      !resumption_.TakeUp()) {
    return false;
  }
  if (phase != Phase::kIdle) {
    own_.phases.Set(phase, "as it was before the restart");
  }
  // Their books are to be compared with what is known again.
  restoration_.ProbePeers();
  return true;
}

NodeStatus Node::Status() const {
  links_.CountSent();
  NodeStatus status = ReportStatus({own_, training_, evaluations_, peers_,
                                    links_, together_, plans_.pending()},
                                   loop_.Now());
  status.incarnation = options_.incarnation;
  status.checkpoint_error = checkpointing_.error();
  status.checkpoint_step = checkpointing_.written();
  return status;
}

// -------------------------------------------------------------- exchanges ----

void Node::Do(const core::Push& a) {
  exchange_.pushes().Do(a, exchange_.mass().EpochToTell());
  for (const NodeId& peer : a.peers) Expect(peer);
}

void Node::Do(const core::Give& a) {
  exchange_.mass().Do(a);
  Expect(a.to);
}

void Node::Do(const core::Missed& a) {
  neighbourhood_.OnMissed(a.peers);
  exchange_.asks().Do(a);
  for (const NodeId& peer : a.peers) {
    if (peers_.TakesPart(peer)) silence_.Missed(peer);
  }
}

// Where nobody waits for anybody it is no matter who is silent.
void Node::Expect(const NodeId& peer) {
  if (!own_.run.algorithm()->continuous && peers_.TakesPart(peer)) {
    silence_.Expect(peer);
  }
}

void Node::OnSilent(const NodeId& peer, bool unanswered) {
  if (unanswered) exchange_.asks().Do(core::Missed{{peer}, 1, 0});
  presence_.OnSilent(peer);
  exchange_.asks().OnSilent(peer);
}

// --------------------------------------------------------------- boundary ----

void Node::VisitBoundary() {
  if (!own_.boundary.here() || own_.suspended) return;
  presence_.RefreshLeaving();
  exchange_.mass().CompareBooks();
  const bool worked = own_.boundary.DoWork();
  if (own_.suspended) return;
  plans_.Adopt();
  // What an export has just asked of the trainer is done before the next step
  // is.
  if (!worked || !own_.phases.Running()) plans_.InstallRenewed();
  orders_.Look();
  together_.Look();
  exchange_.asks().Serve();
  if (!own_.phases.Running()) return;
  if (own_.phases.wants()) {
    joining_.End();
    own_.phases.Obey();
    return;
  }
  if (plans_.AwaitsLearner()) return;
  if (joining_.searching()) {
    joining_.Continue();
    return;
  }
  jumps_.Visit();
  if (evaluations_.Visit()) return;
  if (own_.run.FollowTopology(own_.algorithm.step())) {
    own_.algorithm.Handle(
        core::PlanChanged{own_.run.node(), training_.BatchesPerPass()});
  }
  exchange_.pushes().DeliverEarly();
  if (joining_.AwaitsOthers()) return;
  checkpointing_.Visit();
  own_.LeaveBoundary();
  own_.progress.BeginStep(own_.algorithm.get()->gradients());
  own_.algorithm.Handle(core::StepBegins{});
}

// ------------------------------------------------------------------ peers ----

void Node::OnPeerUp(const NodeId& peer, bool restarted) {
  if (restarted) exchange_.pushes().Forget(peer);
  exchange_.mass().OnPeerUp(peer, restarted);
  peers_.OnLink(peer);
  presence_.TellTo(peer);
  exchange_.transfers().OnPeerUp(peer, restarted);
}

void Node::OnPeerDown(const NodeId& peer, const absl::Status& /*reason*/) {
  silence_.Forget(peer);
  peers_.OnLink(peer);
  exchange_.transfers().OnPeerDown(peer);
  presence_.Refresh(peer);
  exchange_.asks().OnPeerDown(peer);
  exchange_.mass().OnMember(peer);
  if (!own_.run.has_plan() || !own_.run.IsMember(peer)) peers_.Forget(peer);
}

void Node::OnPeerWritable(const NodeId& peer) {
  exchange_.transfers().OnPeerWritable(peer);
}

void Node::OnAddressFailed(const std::string& /*address*/) {
  joining_.Continue();
}

void Node::OnFrame(const NodeId& peer, ports::StateFrame frame) {
  if (frame.wants_answer) presence_.TellTo(peer);
  const bool news = peers_.IsNews(peer, frame);
  const ports::StateFrame& state = peers_.OnState(peer, std::move(frame)).state;
  // One that is joining itself may be ahead once it has a model.
  const bool has_model =
      state.phase != Phase::kIdle && state.phase != Phase::kJoining;
  if (own_.phases.Running() && has_model) joining_.Confirm(peer, state.step);
  together_.OnState(peer);
  exchange_.mass().OnState(peer, state);
  presence_.Refresh(peer);
  if (joining_.waits_for_others() && own_.boundary.here()) {
    own_.boundary.Schedule();
  }
  exchange_.mass().Resume(peer, news);
  resumption_.Look();
  joining_.Continue();
}

}  // namespace dfl::runtime
