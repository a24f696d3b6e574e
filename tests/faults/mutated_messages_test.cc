// Members of a run whose every message may be broken: they send a daemon what
// it sends them, changed in a few places, on link after link. It serves on, and
// trains on with the member that is sound.
//
// DFL_MUTATIONS messages (200); DFL_MUTATION_SEED is the seed (1).
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/rng.h"
#include "dfl/peer/v1/peer.pb.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"
#include "tests/support/environment.h"
#include "tests/support/mutator.h"

namespace dfl::testing_support {
namespace {

namespace pb = ::dfl::peer::v1;

constexpr absl::Duration kPatience = absl::Seconds(60);
// Of a link that the daemon does not close.
constexpr absl::Duration kLongestLink = absl::Milliseconds(500);
constexpr int64_t kBrokenMembers = 3;

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// One of a link's two streams, as bytes. One call at a time.
class RawStream {
 public:
  RawStream(grpc::GenericStub& stub, const std::string& method) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kLongestLink));
    stream_ = stub.PrepareCall(
        &context_, absl::StrCat("/dfl.peer.v1.PeerService/", method), &queue_);
    stream_->StartCall(this);
    open_ = Done();
  }
  ~RawStream() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  bool Write(const std::string& bytes) {
    if (!open_) return false;
    stream_->Write(BufferOf(bytes), this);
    return open_ = Done();
  }
  bool Read(std::string& bytes) {
    if (!open_) return false;
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, this);
    open_ = Done();
    bytes = BytesOf(buffer);
    return open_;
  }

 private:
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  bool open_ = false;
};

// A member that says back what it is told.
class BrokenMember {
 public:
  BrokenMember(std::string name, const std::string& address, uint64_t seed,
               std::atomic<int64_t>& left)
      : name_(std::move(name)),
        stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        rng_(seed),
        left_(left) {}

  void Run() {
    while (left_ > 0) RunLink();
  }
  int64_t answered() const { return answered_; }

 private:
  void RunLink() {
    RawStream control(stub_, "Control");
    RawStream bulk(stub_, "Bulk");
    // Both kinds of request have it in the same field.
    pb::ControlRequest first;
    pb::Hello& hello = *first.mutable_hello();
    hello.set_protocol_version(2);
    hello.set_oldest_protocol_version(2);
    hello.set_node(name_);
    hello.set_incarnation(++incarnation_);
    hello.set_link_nonce(1 + rng_.Next() / 2);
    const std::string bytes = first.SerializeAsString();
    std::string answer;
    if (!control.Write(bytes) || !bulk.Write(bytes) || !control.Read(answer) ||
        !bulk.Read(answer)) {
      return;
    }
    ++answered_;
    // Sound messages first, so that the link gets far.
    const auto sound = static_cast<int64_t>(rng_.Below(12));
    std::thread other([&, seed = rng_.Next()] { Echo(bulk, seed, 1); });
    Echo(control, rng_.Next(), sound);
    other.join();
  }

  // Says back what comes: as it is for `sound` messages, then now and then
  // mutated, until the daemon ends the stream.
  void Echo(RawStream& stream, uint64_t seed, int64_t sound) {
    Mutator mutator(seed);
    Rng rng(seed + 1);
    std::string bytes;
    while (left_ > 0 && stream.Read(bytes)) {
      if (--sound >= 0 || rng.Bernoulli(0.5)) {
        if (!stream.Write(bytes)) return;
      } else {
        if (!stream.Write(mutator.Mutate(bytes))) return;
        --left_;
      }
    }
  }

  const std::string name_;
  grpc::GenericStub stub_;
  Rng rng_;
  std::atomic<int64_t>& left_;
  uint64_t incarnation_ = 0;
  int64_t answered_ = 0;
};

class MutatedMessages : public testing::TestWithParam<std::string> {
 protected:
  std::string PlanText() const {
    return absl::StrCat(
        "run: mutated\nseed: 11\nversion: 1\n"
        "members: [sound, victim, broken-0, broken-1, broken-2]\n"
        "model: {kind: linear, classes: 0}\nbatch_size: 20\n"
        "deadline: {exchange: 50ms}\nevaluation: {every_steps: 0}\n"
        "topology: {kind: complete}\nstop: {steps: 100000000}\n"
        "algorithm: {name: ",
        GetParam(), "}\n");
  }
  std::unique_ptr<DaemonProcess> Start(const std::string& name,
                                       std::vector<std::string> peers) {
    DaemonProcess::Options options;
    options.program = "analytic_dfld";
    options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = "unread.csv";
    options.peers = std::move(peers);
    auto node = std::make_unique<DaemonProcess>(options);
    EXPECT_TRUE(node->Start()) << node->log();
    client::ApplyPlanOptions apply;
    apply.yaml = PlanText();
    EXPECT_TRUE(node->client().ApplyPlan(apply).ok());
    EXPECT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    return node;
  }
  static int64_t ModelsFrom(const client::NodeStatus& status,
                            const std::string& peer) {
    for (const client::PeerStatus& entry : status.peers) {
      if (entry.node == peer) return entry.models_received;
    }
    return 0;
  }

  TemporaryFolder folder_;
};

TEST_P(MutatedMessages, ADaemonServesOn) {
  WriteFile(
      folder_.File("scenario.yaml"),
      PlanText() + "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
  const auto victim = Start("victim", {});
  const auto sound = Start("sound", {victim->peer_address()});
  const auto begun = [](const auto& status) { return status.step > 10; };
  ASSERT_TRUE(victim->StatusBecomes(kPatience, begun)) << victim->log();
  ASSERT_TRUE(sound->StatusBecomes(kPatience, begun)) << sound->log();

  const int64_t mutations = FromEnvironment("DFL_MUTATIONS", 200);
  const auto seed =
      static_cast<uint64_t>(FromEnvironment("DFL_MUTATION_SEED", 1));
  std::atomic<int64_t> left = mutations;
  std::vector<std::unique_ptr<BrokenMember>> broken;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < kBrokenMembers; ++i) {
    broken.push_back(std::make_unique<BrokenMember>(
        absl::StrCat("broken-", i), victim->peer_address(),
        seed + static_cast<uint64_t>(i), left));
    threads.emplace_back([&member = *broken.back()] { member.Run(); });
  }
  for (std::thread& thread : threads) thread.join();

  const client::NodeStatus after = victim->Status();
  EXPECT_EQ(after.node, "victim") << victim->log();
  EXPECT_TRUE(victim->StatusBecomes(kPatience, [&](const auto& status) {
    return status.phase == client::Phase::kTraining &&
           status.step > after.step + 50 &&
           ModelsFrom(status, "sound") > ModelsFrom(after, "sound") + 20;
  })) << victim->log();
  for (const auto& member : broken) {
    EXPECT_GT(member->answered(), 3) << "its links do not come up";
  }
  std::cout << GetParam() << ": " << mutations - left << " mutated messages\n";
  EXPECT_TRUE(victim->Stop().has_value());
  EXPECT_TRUE(sound->Stop().has_value());
}

INSTANTIATE_TEST_SUITE_P(Kinds, MutatedMessages,
                         testing::Values("d-psgd", "k-gt", "pame"),
                         [](const auto& info) {
                           return info.param == "d-psgd" ? "Models"
                                  : info.param == "k-gt" ? "Mass"
                                                         : "Asks";
                         });

}  // namespace
}  // namespace dfl::testing_support
