// Signed records between nodes with real sockets, TLS, disks and clocks; and a
// stolen box, which has a good certificate of a node and says what it likes.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/worker.h"
#include "daemon/base/rng.h"
#include "daemon/base/sha256.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/net/network_security.h"
#include "daemon/records/record_content.h"
#include "daemon/records/records_in_force.h"
#include "daemon/records/sign_record.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/store/disk_files.h"
#include "daemon/tls/signature.h"
#include "dfl/record/v1/record.pb.h"
#include "gtest/gtest.h"
#include "tests/support/made_credentials.h"
#include "tests/support/process.h"

namespace dfl::records {
namespace {

namespace pb = ::dfl::record::v1;
using ports::RecordId;
using ports::RecordPart;
using ports::RecordSummary;
using ports::RecordWant;
using tls::Role;

constexpr absl::Duration kLimit = absl::Seconds(30);

// The network "plant-4", its people and the folders of its nodes.
struct Plant {
  tls::Authority authority = tls::MakeAuthority("plant-4", absl::Now());
  testing_support::TemporaryFolder folder;
  int made = 0;

  std::shared_ptr<const tls::Credentials> Person(Role role,
                                                 const std::string& name) {
    return tls::MakeCredentials(authority, {"plant-4", role, name});
  }
  std::unique_ptr<net::NetworkSecurity> Security(const std::string& node) {
    auto security =
        net::NetworkSecurity::Create(folder.File(absl::StrCat("net-", ++made)));
    EXPECT_TRUE(security.ok()) << security.status();
    EXPECT_TRUE((*security)->Use(Person(Role::kNode, node)).ok());
    return *std::move(security);
  }
};

void RunOn(app::EventLoop& loop, const std::function<void()>& f) {
  EXPECT_TRUE(loop.RunAndWait(f));
}

// Whether `done`, asked on the loop, comes to hold.
bool WaitOn(app::EventLoop& loop, const std::function<bool()>& done) {
  return testing_support::Eventually(kLimit, [&] {
    bool holds = false;
    RunOn(loop, [&] { holds = done(); });
    return holds;
  });
}

// A node with a loop, a disk and a listener; it obeys bans as dfld does.
class HonestNode final : public runtime::RecordListener,
                         public ports::EventSink {
 public:
  HonestNode(Plant& plant, const std::string& name)
      : security_(plant.Security(name)),
        codec_("plant-4", [] { return absl::Now(); }),
        loop_(name),
        worker_(loop_, name) {
    codec_.SetBundle({plant.authority.certificate()});
    auto files = store::DiskFiles::OpenFolder(plant.folder.File(name));
    EXPECT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    exchange::GrpcTransportOptions transport;
    transport.self.node = NodeId(name);
    transport.self.incarnation = 1;
    transport.security = security_.get();
    transport_ =
        std::make_unique<exchange::GrpcTransport>(loop_, std::move(transport));
    runtime::NodeOptions options;
    options.self = NodeId(name);
    Run([&] {
      node_ = std::make_unique<runtime::LinkedNode>(
          options, loop_, *transport_, worker_, *this,
          runtime::RecordOptions{&codec_, files_.get(), this});
      EXPECT_TRUE(node_->records().Load().ok());
    });
    const auto bound = transport_->Listen({"127.0.0.1:0"});
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (bound.ok()) address_ = bound->front();
  }
  ~HonestNode() override {
    Run([&] {
      transport_->Shutdown();
      node_.reset();
    });
    worker_.Stop();
    loop_.Stop();
    transport_.reset();
  }

  void Run(const std::function<void()>& f) { RunOn(loop_, f); }
  bool Wait(const std::function<bool()>& done) { return WaitOn(loop_, done); }
  void Dial(const std::string& address) {
    Run([&] { EXPECT_TRUE(node_->links().AddAddress(address).ok()); });
  }
  bool WaitForLink(const std::string& peer) {
    return Wait([&] { return node_->links().IsUp(NodeId(peer)); });
  }
  bool WaitForEnd(const std::string& peer) {
    return Wait([&] { return !node_->links().IsUp(NodeId(peer)); });
  }
  absl::Status Offer(const std::string& bytes) {
    absl::Status status;
    Run([&] { status = node_->records().Offer(bytes).status(); });
    return status;
  }
  bool WaitFor(const std::string& bytes) {
    return Wait([&] {
      const auto& current = node_->records().book().current();
      return std::any_of(current.begin(), current.end(), [&](const auto& held) {
        return held.record->bytes == bytes;
      });
    });
  }
  // All that records decide here.
  std::string State() {
    std::string state;
    Run([&] {
      const runtime::RecordBook& book = node_->records().book();
      for (const auto& held : book.current()) {
        absl::StrAppend(&state, held.record->Describe(), " ",
                        absl::BytesToHexString(held.record->id.hash), "\n");
      }
      for (const auto& past : book.history()) {
        absl::StrAppend(&state, "past ", past.text, " by ", past.author, "\n");
      }
      for (const tls::Identity& banned : BannedBy(book)) {
        absl::StrAppend(&state, "banned ", tls::ToUri(banned), "\n");
      }
      const auto plan = NewestPlan(book);
      if (plan != nullptr) absl::StrAppend(&state, plan->content(), "\n");
      for (const char* node : {"n0", "n1", "n2"}) {
        const auto wanted = PhaseWantedOf(book, node, {});
        if (!wanted.has_value()) continue;
        absl::StrAppend(&state, node, " ", static_cast<int>(wanted->phase), " ",
                        wanted->counter, "\n");
      }
    });
    return state;
  }
  // Texts of the records that were refused.
  std::vector<std::string> Refused() {
    std::vector<std::string> refused;
    Run([&] { refused = refused_; });
    return refused;
  }
  bool WaitForRefusals(size_t count) {
    return Wait([&] { return refused_.size() >= count; });
  }
  // Nothing is being fetched.
  bool WaitForQuiet() {
    return Wait([&] { return node_->records().pulls().under_way() == 0; });
  }
  int64_t BadMessages() {
    int64_t count = 0;
    Run([&] { count = node_->node().Status().rejected["bad-message"]; });
    return count;
  }
  const std::string& address() const { return address_; }

 private:
  void OnRecordTaken(const runtime::Record& /*record*/,
                     const NodeId& /*from*/) override {
    const std::vector<tls::Identity> banned = BannedBy(node_->records().book());
    codec_.SetBanned(banned);
    security_->SetBanned(banned);
    node_->records().TrustChanged();
    transport_->RecheckPeers(absl::Now());
  }
  void Report(const ports::NodeEvent& event) override {
    const auto* came = std::get_if<ports::RecordCame>(&event);
    if (came != nullptr && !came->taken) refused_.push_back(came->text);
  }

  std::unique_ptr<net::NetworkSecurity> security_;
  SignedRecordCodec codec_;
  std::unique_ptr<ports::Files> files_;
  app::EventLoop loop_;
  app::Worker worker_;
  std::unique_ptr<exchange::GrpcTransport> transport_;
  std::vector<std::string> refused_;
  std::unique_ptr<runtime::LinkedNode> node_;
  std::string address_;
};

// A box whose owner is a thief. Whoever wants a record from it gets the bytes
// that `stock` has under the record's hash.
class StolenBox final : private ports::Transport::Handler {
 public:
  StolenBox(Plant& plant, const std::string& name)
      : security_(plant.Security(name)), loop_(name) {
    exchange::GrpcTransportOptions options;
    options.self.node = NodeId(name);
    options.self.incarnation = 1;
    options.security = security_.get();
    transport_ =
        std::make_unique<exchange::GrpcTransport>(loop_, std::move(options));
    transport_->SetHandler(this);
  }
  ~StolenBox() override {
    Run([&] { transport_.reset(); });
    loop_.Stop();
  }

  void Run(const std::function<void()>& f) { RunOn(loop_, f); }
  bool Wait(const std::function<bool()>& done) { return WaitOn(loop_, done); }
  // Whether a link came of it.
  bool Dial(const std::string& address) {
    size_t before = 0;
    bool linked = false;
    Run([&] {
      before = links_.size();
      failed_ = 0;
      transport_->Dial(address);
    });
    const bool ended = Wait([&] {
      linked = links_.size() > before;
      return linked || failed_ > 0;
    });
    return ended && linked;
  }
  // Serves `bytes` under the name `id`, and announces it to all.
  void Announce(const RecordId& id, const std::string& bytes) {
    Run([&] {
      stock_[id.hash] = bytes;
      SendAll(RecordSummary{{id}});
    });
  }
  void SendAll(const ports::Frame& frame) {
    for (const ports::LinkId link : links_) (void)transport_->Send(link, frame);
  }
  // Waits until all that was sent has been looked at: what is asked for last is
  // answered last.
  bool Settle() {
    Run([&] {
      answers_ = 0;
      fence_ = {1, "fence", fence_.counter + 1, std::string(32, 'f')};
      SendAll(RecordWant{fence_});
    });
    return Wait([&] { return answers_ >= links_.size(); });
  }
  size_t links() {
    size_t count = 0;
    Run([&] { count = links_.size(); });
    return count;
  }

 private:
  void OnLinkUp(ports::LinkId link, const ports::PeerIdentity&,
                const std::string&) override {
    links_.push_back(link);
  }
  void OnDialFailed(const std::string&, const absl::Status&) override {
    ++failed_;
  }
  void OnFrame(ports::LinkId link, ports::Frame frame) override {
    if (const auto* want = std::get_if<RecordWant>(&frame)) {
      const std::string& bytes = stock_[want->record.hash];
      const auto offset = static_cast<size_t>(want->offset);
      if (offset >= bytes.size()) return;
      (void)transport_->Send(
          link, RecordPart{want->record, static_cast<int64_t>(bytes.size()),
                           want->offset,
                           bytes.substr(offset, ports::kMaxRecordPartBytes)});
    } else if (const auto* part = std::get_if<RecordPart>(&frame)) {
      if (part->record == fence_) ++answers_;
    }
  }
  void OnWritable(ports::LinkId) override {}
  void OnLinkDown(ports::LinkId link, const absl::Status&) override {
    links_.erase(std::find(links_.begin(), links_.end(), link));
  }

  std::unique_ptr<net::NetworkSecurity> security_;
  app::EventLoop loop_;
  std::map<std::string, std::string> stock_;
  std::vector<ports::LinkId> links_;
  RecordId fence_;
  size_t answers_ = 0;
  int failed_ = 0;
  std::unique_ptr<exchange::GrpcTransport> transport_;
};

// The name that the record in `bytes` has, true or forged.
RecordId NameOf(const std::string& bytes) {
  pb::SignedRecord record;
  pb::RecordBody body;
  EXPECT_TRUE(record.ParseFromString(bytes));
  EXPECT_TRUE(body.ParseFromString(record.body()));
  return {static_cast<int32_t>(body.kind()), body.subject(), body.counter(),
          absl::HexStringToBytes(Sha256Hex(record.body()))};
}

pb::RecordBody BodyOf(RecordKind kind, uint64_t counter,
                      const std::string& content,
                      const tls::Credentials& author) {
  pb::RecordBody body;
  body.set_cluster("plant-4");
  body.set_kind(static_cast<pb::RecordKind>(kind));
  if (kind == RecordKind::kBan) body.set_subject("spiffe://plant-4/node/n0");
  body.set_counter(counter);
  body.set_author(tls::ToUri(author.identity));
  body.set_unix_nanos(absl::ToUnixNanos(absl::Now()));
  body.set_content_sha256(absl::HexStringToBytes(Sha256Hex(content)));
  return body;
}

// Signs whatever it is given.
std::string SignRaw(const pb::RecordBody& body, const std::string& content,
                    const tls::Credentials& author) {
  pb::SignedRecord record;
  record.set_body(body.SerializeAsString());
  record.set_signature(
      *tls::Sign(author.key, absl::StrCat(kSignedPrefix, record.body())));
  for (const tls::Certificate& certificate : author.chain) {
    record.add_certificates(tls::ToDer(certificate));
  }
  record.set_content(content);
  return record.SerializeAsString();
}

// n0 - n1 - n2, which hold a plan, a phase and a ban.
class Records : public testing::Test {
 protected:
  Records() : ann_(plant_.Person(Role::kOperator, "ann")) {
    for (const char* name : {"n0", "n1", "n2"}) {
      nodes_.push_back(std::make_unique<HonestNode>(plant_, name));
    }
    nodes_[1]->Dial(nodes_[0]->address());
    nodes_[2]->Dial(nodes_[1]->address());
    EXPECT_TRUE(nodes_[1]->WaitForLink("n0"));
    EXPECT_TRUE(nodes_[2]->WaitForLink("n1"));
    old_plan_ = Sign(RecordKind::kPlan, "", 4, "plan 4");
    plan_ = Sign(RecordKind::kPlan, "", 5, "plan 5");
    unban_ = Sign(RecordKind::kBan, kLost, 1, ToContent(BanOrder{false, ""}));
    ban_ = Sign(RecordKind::kBan, kLost, 2, ToContent(BanOrder{true, "lost"}));
    Spread(old_plan_);
    Spread(plan_);
    Spread(unban_);
    Spread(ban_);
    Spread(Sign(RecordKind::kPhase, "", 1,
                ToContent(PhaseOrder{
                    runtime::DesiredPhase::kPaused, {"n1"}, "run-1"})));
  }

  std::string Sign(RecordKind kind, const std::string& subject,
                   uint64_t counter, const std::string& content) {
    const auto bytes =
        SignRecord(kind, subject, counter, content, *ann_, absl::Now());
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }
  // Brings a record to n0, and waits until all have it.
  void Spread(const std::string& bytes) {
    const absl::Status offered = nodes_[0]->Offer(bytes);
    EXPECT_TRUE(offered.ok()) << offered;
    for (const auto& node : nodes_) EXPECT_TRUE(node->WaitFor(bytes));
  }
  std::vector<std::string> States() {
    std::vector<std::string> states;
    for (const auto& node : nodes_) states.push_back(node->State());
    return states;
  }
  // A new box, linked to n1, announces `bytes` under `id`; n1 must fetch them,
  // refuse them for `why`, and be as before, and so must all.
  void ExpectRefused(const RecordId& id, const std::string& bytes,
                     const std::string& why) {
    SCOPED_TRACE(why);
    const std::vector<std::string> before = States();
    const size_t refused = nodes_[1]->Refused().size();
    const int64_t bad = nodes_[1]->BadMessages();
    StolenBox box(plant_, absl::StrCat("box-", ++boxes_));
    ASSERT_TRUE(box.Dial(nodes_[1]->address()));
    box.Announce(id, bytes);
    ASSERT_TRUE(nodes_[1]->WaitForRefusals(refused + 1));
    EXPECT_TRUE(absl::StrContains(nodes_[1]->Refused().back(), why))
        << nodes_[1]->Refused().back();
    EXPECT_EQ(nodes_[1]->BadMessages(), bad + 1);
    ASSERT_TRUE(box.Settle());
    EXPECT_EQ(States(), before);
    EXPECT_TRUE(nodes_[0]->Refused().empty());  // nobody passed it on
    EXPECT_TRUE(nodes_[2]->Refused().empty());
  }
  void ExpectRefused(const std::string& bytes, const std::string& why) {
    ExpectRefused(NameOf(bytes), bytes, why);
  }

  static constexpr char kLost[] = "spiffe://plant-4/node/lost";

  Plant plant_;
  const std::shared_ptr<const tls::Credentials> ann_;
  std::vector<std::unique_ptr<HonestNode>> nodes_;
  std::string old_plan_;
  std::string plan_;
  std::string unban_;
  std::string ban_;
  int boxes_ = 0;
};

TEST_F(Records, TravelToAllAndSurviveARestart) {
  const std::string big =
      Sign(RecordKind::kPlan, "", 6, std::string(8 << 20, 'p'));
  Spread(big);
  const std::string state = nodes_[2]->State();
  nodes_[2].reset();
  nodes_[2] = std::make_unique<HonestNode>(plant_, "n2");
  EXPECT_EQ(nodes_[2]->State(), state);
}

TEST_F(Records, WithABrokenSignatureAreRefused) {
  pb::SignedRecord record;
  const std::string next = Sign(RecordKind::kPlan, "", 6, "plan 6");
  ASSERT_TRUE(record.ParseFromString(next));
  pb::SignedRecord broken = record;
  broken.mutable_signature()->back() ^= 1;
  ExpectRefused(broken.SerializeAsString(), "does not have the signature");
  broken = record;
  broken.set_content("plan X");
  ExpectRefused(broken.SerializeAsString(), "another content");
  ExpectRefused(NameOf(next), next.substr(0, next.size() - 1), "");
  ExpectRefused(NameOf(next), "nonsense", "damaged");
  // The box has spoilt nothing for the true record of that name.
  Spread(next);
}

TEST_F(Records, OfAViewerOrANodeAreRefused) {
  for (const Role role : {Role::kViewer, Role::kNode}) {
    const auto author = plant_.Person(role, "box-9");
    ExpectRefused(SignRaw(BodyOf(RecordKind::kPlan, 6, "plan 6", *author),
                          "plan 6", *author),
                  absl::StrCat("the role ", tls::Name(role)));
    const std::string ban = ToContent(BanOrder{true, ""});
    ExpectRefused(
        SignRaw(BodyOf(RecordKind::kBan, 6, ban, *author), ban, *author),
        absl::StrCat("the role ", tls::Name(role)));
    // With the operator's name, or with the operator's certificate.
    pb::RecordBody body = BodyOf(RecordKind::kPlan, 6, "plan 6", *ann_);
    ExpectRefused(SignRaw(body, "plan 6", *author), "as its author");
    tls::Credentials stolen = *author;
    stolen.chain = ann_->chain;
    ExpectRefused(SignRaw(body, "plan 6", stolen),
                  "does not have the signature");
  }
}

TEST_F(Records, OfAnOldCounterChangeNothing) {
  // As what it is nobody fetches it; under a new name it is refused.
  RecordId id = NameOf(old_plan_);
  id.counter = 6;
  ExpectRefused(id, old_plan_, "not the record that was announced");
  id = NameOf(unban_);
  id.counter = 3;
  id.hash.assign(32, 'h');
  ExpectRefused(id, unban_, "not the record that was announced");
  const std::vector<std::string> before = States();
  StolenBox box(plant_, "box");
  ASSERT_TRUE(box.Dial(nodes_[1]->address()));
  for (const std::string* old : {&old_plan_, &unban_}) {
    box.Announce(NameOf(*old), *old);
    box.Run([&] {
      box.SendAll(
          RecordPart{NameOf(*old), static_cast<int64_t>(old->size()), 0, *old});
    });
  }
  ASSERT_TRUE(box.Settle());
  EXPECT_EQ(States(), before);
  EXPECT_TRUE(nodes_[0]->Offer(old_plan_).ok());  // a person may; it is older
  EXPECT_EQ(States(), before);
}

TEST_F(Records, OfAnotherNetworkAreRefused) {
  const tls::Authority other = tls::MakeAuthority("plant-5", absl::Now());
  const auto eve =
      tls::MakeCredentials(other, {"plant-5", Role::kOperator, "ann"});
  pb::RecordBody body = BodyOf(RecordKind::kPlan, 6, "plan 6", *eve);
  ExpectRefused(SignRaw(body, "plan 6", *eve), "signed by spiffe://plant-5");
  body.set_cluster("plant-5");
  ExpectRefused(SignRaw(body, "plan 6", *eve), "for network \"plant-5\"");
  // An authority that calls itself by this network's name.
  const tls::Authority twin = tls::MakeAuthority("plant-4", absl::Now());
  const auto mallory =
      tls::MakeCredentials(twin, {"plant-4", Role::kOperator, "ann"});
  ExpectRefused(SignRaw(BodyOf(RecordKind::kPlan, 6, "plan 6", *mallory),
                        "plan 6", *mallory),
                "was issued by");
}

TEST_F(Records, ForwardedByABannedNodeDoNotArrive) {
  StolenBox box(plant_, "thief");
  ASSERT_TRUE(box.Dial(nodes_[1]->address()));
  ASSERT_TRUE(nodes_[1]->WaitForLink("thief"));
  Spread(Sign(RecordKind::kBan, "spiffe://plant-4/node/thief", 1,
              ToContent(BanOrder{true, "stolen"})));
  // The live link ends.
  EXPECT_TRUE(nodes_[1]->WaitForEnd("thief"));
  const std::vector<std::string> before = States();
  // A good record, in the hands of the thief alone.
  const std::string next = Sign(RecordKind::kPlan, "", 6, "plan 6");
  box.Announce(NameOf(next), next);
  EXPECT_FALSE(box.Dial(nodes_[1]->address()));
  EXPECT_EQ(box.links(), 0U);
  box.Announce(NameOf(next), next);
  Spread(Sign(
      RecordKind::kPhase, "", 2,
      ToContent(PhaseOrder{runtime::DesiredPhase::kTraining, {}, "run-1"})));
  EXPECT_EQ(nodes_[1]->State().find("plan 6"), std::string::npos);
  // Whoever else brings it, it counts.
  Spread(next);
}

// A box that was patched to send any record frames that it likes, to every node
// at once, changes nothing on any of them.
TEST_F(Records, AStolenBoxChangesNothingOnTheOthers) {
  const std::vector<std::string> before = States();
  StolenBox box(plant_, "thief");
  for (const auto& node : nodes_) ASSERT_TRUE(box.Dial(node->address()));
  const auto thief = plant_.Person(Role::kNode, "thief");
  const std::string next = Sign(RecordKind::kPlan, "", 7, "plan 7");
  const std::string ban = ToContent(BanOrder{true, ""});
  const std::vector<std::string> shelf = {
      SignRaw(BodyOf(RecordKind::kPlan, 1'000'000, "evil", *thief), "evil",
              *thief),
      SignRaw(BodyOf(RecordKind::kBan, 1'000'000, ban, *thief), ban, *thief),
      SignRaw(BodyOf(RecordKind::kPlan, 6, "evil", *ann_), "evil", *thief),
      old_plan_,
      plan_,
      unban_,
      ban_,
      std::string(ports::kMaxRecordBytes, 'x'),
      "",
      "x",
      next.substr(0, next.size() / 2)};
  Rng rng(5);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = shelf[rng.Below(shelf.size())];
    RecordId id;
    id.kind = static_cast<int32_t>(1 + rng.Below(4));
    id.counter = rng.Bernoulli(0.5) ? 1 + rng.Below(10) : rng.Next() | 1;
    if (rng.Bernoulli(0.5)) id.subject = kLost;
    id.hash = absl::HexStringToBytes(Sha256Hex(absl::StrCat(rng.Below(100))));
    if (rng.Bernoulli(0.3)) id = NameOf(shelf[rng.Below(7)]);
    if (rng.Bernoulli(0.3)) id = NameOf(next);
    if (!bytes.empty() && rng.Bernoulli(0.3)) {
      bytes[rng.Below(bytes.size())] ^= static_cast<char>(1 + rng.Below(255));
    }
    const auto total = static_cast<int64_t>(bytes.size());
    switch (rng.Below(8)) {
      case 0:
      case 2:
        box.Announce(id, bytes);
        break;
      case 1:
        box.Run([&] {
          box.SendAll(RecordWant{
              id, static_cast<int64_t>(rng.Below(ports::kMaxRecordBytes))});
        });
        break;
      default: {
        const auto offset = static_cast<int64_t>(
            rng.Bernoulli(0.7) ? 0 : rng.Below(bytes.size() + 1));
        const std::string data = bytes.substr(static_cast<size_t>(offset),
                                              ports::kMaxRecordPartBytes);
        box.Run([&] { box.SendAll(RecordPart{id, total, offset, data}); });
      }
    }
    if (i % 500 == 499) {
      ASSERT_TRUE(box.Settle());
    }
  }
  for (const auto& node : nodes_) ASSERT_TRUE(node->WaitForQuiet());
  EXPECT_EQ(States(), before);
  // Whoever lies as often as this is shut out after a while.
  for (const auto& node : nodes_) EXPECT_GT(node->BadMessages(), 0);
  // The others' records travel on, also one that the box has spoilt.
  Spread(next);
  Spread(Sign(RecordKind::kBan, "spiffe://plant-4/node/thief", 1,
              ToContent(BanOrder{true, "stolen"})));
  for (const auto& node : nodes_) EXPECT_TRUE(node->WaitForEnd("thief"));
}

}  // namespace
}  // namespace dfl::records
