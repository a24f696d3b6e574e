// How fast a model goes between two processes over loopback, in three ways, one
// after the other in each round:
//
//   bare       the chunks over a plain gRPC stream, counted at the other end
//   transport  the same chunks over GrpcTransport
//   daemons    all that two daemons do: a snapshot is encoded as dense fp32,
//              announced, sent, acknowledged chunk by chunk, put together,
//              checked and decoded (runtime::Transfers on Links)
//
//   exchange_bench [rounds] [megabytes] [KiB a chunk]
//
// 44.7 MB are an 11 M parameter model as dense fp32; chunks are as large as the
// daemon's, 256 KiB. Prints every round and the medians; exits 1 when the
// daemons have less than half of the bare rate.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/worker.h"
#include "daemon/base/check.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/exchange/address.h"
#include "daemon/exchange/grpc_transport.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/snapshot.h"
#include "daemon/runtime/transfers/transfers.h"
#include "dfl/peer/v1/peer.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

struct Job {
  int rounds = 9;
  int64_t bytes = 44'700'000;
  int64_t chunk_bytes = runtime::TransfersOptions().chunk_bytes;
};

// Both ends of one transport: sends the body when told, and acknowledges one
// that came.
class Peer final : public ports::Transport::Handler {
 public:
  Peer(const std::string& name, const Job& job)
      : loop_("bench"), job_(job), body_(job.bytes, 'x') {
    GrpcTransportOptions options;
    options.self.node = NodeId(name);
    options.self.incarnation = 1;
    transport_ = std::make_unique<GrpcTransport>(loop_, std::move(options));
    transport_->SetHandler(this);
  }
  ~Peer() override {
    loop_.RunAndWait([this] { transport_.reset(); });
    loop_.Stop();
  }

  int Listen() {
    const auto bound = transport_->Listen({"127.0.0.1:0"});
    DFL_CHECK(bound.ok());
    return ParseHostPort(bound->front())->port;
  }
  void Connect(int port) {
    loop_.RunAndWait(
        [&] { transport_->Dial(absl::StrCat("127.0.0.1:", port)); });
    up_.WaitForNotification();
  }
  // Seconds from the first Send to the acknowledgement of the last byte.
  double Transfer() {
    absl::Notification done;
    const absl::Time start = absl::Now();
    loop_.RunAndWait([&] {
      done_ = &done;
      offset_ = 0;
      Pump();
    });
    done.WaitForNotification();
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

  void OnLinkUp(LinkId link, const ports::PeerIdentity&,
                const std::string&) override {
    link_ = link;
    up_.Notify();
  }
  void OnDialFailed(const std::string&, const absl::Status& status) override {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  void OnFrame(LinkId link, ports::Frame frame) override {
    if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      received_ += chunk->data.size();
      if (received_ < job_.bytes) return;
      received_ = 0;
      ports::TransferAck ack;
      ack.complete = true;
      DFL_CHECK(transport_->Send(link, ack).ok());
    } else if (done_ != nullptr) {
      std::exchange(done_, nullptr)->Notify();
    }
  }
  void OnWritable(LinkId) override { Pump(); }
  void OnLinkDown(LinkId, const absl::Status&) override {}

 private:
  void Pump() {
    while (offset_ < job_.bytes) {
      ports::Chunk chunk;
      chunk.transfer = 1;
      chunk.offset = offset_;
      const int64_t size = std::min(job_.chunk_bytes, job_.bytes - offset_);
      chunk.data.assign(body_.data() + offset_, size);
      if (!transport_->Send(link_, std::move(chunk)).ok()) return;
      offset_ += size;
    }
  }

  app::EventLoop loop_;
  const Job job_;
  const std::string body_;
  std::unique_ptr<GrpcTransport> transport_;
  absl::Notification up_;
  LinkId link_ = 0;
  int64_t offset_ = 0;
  int64_t received_ = 0;
  absl::Notification* done_ = nullptr;
};

// What a daemon exchanges models with, but no training: pushes the model when
// told, and takes one that comes.
class Exchanger final : public runtime::Links::Listener,
                        public runtime::Transfers::Listener,
                        public ports::EventSink {
 public:
  Exchanger(const std::string& name, const Job& job)
      : loop_("bench"), worker_(loop_, "bench"), parameters_(job.bytes / 4) {
    GrpcTransportOptions transport;
    transport.self.node = NodeId(name);
    transport.self.incarnation = 1;
    runtime::LinksOptions links;
    links.self = NodeId(name);
    runtime::TransfersOptions transfers;
    transfers.chunk_bytes = job.chunk_bytes;
    auto snapshot = std::make_shared<runtime::Snapshot>();
    snapshot->parameters.assign(parameters_, 0.5F);
    snapshot_ = std::move(snapshot);
    loop_.RunAndWait([&] {
      transport_ = std::make_unique<GrpcTransport>(loop_, std::move(transport));
      links_ = std::make_unique<runtime::Links>(links, loop_, *transport_,
                                                *this, *this);
      transfers_ = std::make_unique<runtime::Transfers>(
          transfers, loop_, worker_, *links_, *this);
    });
  }
  ~Exchanger() override {
    loop_.RunAndWait([this] {
      transport_->Shutdown();
      transfers_.reset();
      links_.reset();
      transport_.reset();
    });
    worker_.Stop();
    loop_.Stop();
  }

  int Listen() {
    const auto bound = transport_->Listen({"127.0.0.1:0"});
    DFL_CHECK(bound.ok());
    return ParseHostPort(bound->front())->port;
  }
  void Connect(int port) {
    loop_.RunAndWait([&] {
      DFL_CHECK(links_->AddAddress(absl::StrCat("127.0.0.1:", port)).ok());
    });
    up_.WaitForNotification();
  }
  // Seconds from the order to send until the other end has taken the model.
  double Transfer() {
    absl::Notification done;
    const absl::Time start = absl::Now();
    loop_.RunAndWait([&] {
      runtime::Outgoing outgoing;
      outgoing.to = peer_;
      outgoing.kind = ports::TransferKind::kPush;
      outgoing.format = {core::Coordinates::kDense, core::ValueType::kFp32};
      outgoing.sent_coordinates = parameters_;
      outgoing.snapshot = snapshot_;
      outgoing.done = [&done](absl::StatusOr<runtime::Receipt> sent) {
        DFL_CHECK(sent.ok());
        done.Notify();
      };
      transfers_->Send(std::move(outgoing));
    });
    done.WaitForNotification();
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

  // runtime::Links::Listener
  void OnPeerUp(const NodeId& peer, bool restarted) override {
    peer_ = peer;
    transfers_->OnPeerUp(peer, restarted);
    up_.Notify();
  }
  void OnPeerDown(const NodeId& peer, const absl::Status&) override {
    transfers_->OnPeerDown(peer);
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame frame) override {
    if (auto* begin = std::get_if<ports::TransferBegin>(&frame)) {
      transfers_->OnFrame(peer, std::move(*begin));
    } else if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      transfers_->OnFrame(peer, *chunk);
    } else if (const auto* ack = std::get_if<ports::TransferAck>(&frame)) {
      transfers_->OnFrame(peer, *ack);
    } else if (const auto* cancel =
                   std::get_if<ports::TransferCancel>(&frame)) {
      transfers_->OnFrame(peer, *cancel);
    }
  }
  void OnPeerWritable(const NodeId& peer) override {
    transfers_->OnPeerWritable(peer);
  }
  void OnAddressFailed(const std::string&) override {}

  // runtime::Transfers::Listener
  runtime::Admission Admit(const NodeId&, const ports::TransferBegin&,
                           const codec::EncodedHeader*) override {
    return runtime::ModelLengths{parameters_, 0};
  }
  void OnModel(const NodeId&, ports::TransferKind, uint64_t, int64_t,
               std::vector<double>, absl::Duration,
               std::unique_ptr<codec::DecodedMessage>) override {}
  double OnMass(const NodeId&, uint64_t, uint64_t, int64_t, std::vector<double>,
                std::unique_ptr<codec::DecodedMessage>) override {
    return 0;
  }
  void OnTransferLost(const NodeId&, ports::TransferKind, uint64_t,
                      const std::string& why) override {
    std::fprintf(stderr, "lost: %s\n", why.c_str());
    std::abort();
  }
  void OnBadMessage(const NodeId&, ports::RefuseReason,
                    const std::string& text) override {
    std::fprintf(stderr, "refused: %s\n", text.c_str());
    std::abort();
  }

  // ports::EventSink
  void Report(const ports::NodeEvent&) override {}

 private:
  app::EventLoop loop_;
  app::Worker worker_;
  const int64_t parameters_;
  runtime::SnapshotPtr snapshot_;
  std::unique_ptr<GrpcTransport> transport_;
  std::unique_ptr<runtime::Links> links_;
  std::unique_ptr<runtime::Transfers> transfers_;
  NodeId peer_;
  absl::Notification up_;
};

// The bare stream: a synchronous server that reads and counts.
class BareService final : public pb::PeerService::Service {
 public:
  explicit BareService(const Job& job) : job_(job) {}
  grpc::Status Bulk(grpc::ServerContext*,
                    grpc::ServerReaderWriter<pb::BulkResponse, pb::BulkRequest>*
                        stream) override {
    pb::BulkRequest request;
    int64_t received = 0;
    while (stream->Read(&request)) {
      received += request.chunk().data().size();
      if (received < job_.bytes) continue;
      received = 0;
      stream->Write(pb::BulkResponse());
    }
    return grpc::Status::OK;
  }

 private:
  const Job job_;
};

double BareTransfer(
    const Job& job, const std::string& body,
    grpc::ClientReaderWriter<pb::BulkRequest, pb::BulkResponse>& stream) {
  const absl::Time start = absl::Now();
  pb::BulkRequest request;
  for (int64_t offset = 0; offset < job.bytes;) {
    const int64_t size = std::min(job.chunk_bytes, job.bytes - offset);
    request.mutable_chunk()->set_transfer(1);
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_data(body.data() + offset, size);
    DFL_CHECK(stream.Write(request));
    offset += size;
  }
  pb::BulkResponse response;
  DFL_CHECK(stream.Read(&response));
  return absl::ToDoubleSeconds(absl::Now() - start);
}

// The receiving process: writes its three ports to `out`, serves until killed.
[[noreturn]] void Serve(const Job& job, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  BareService service(job);
  grpc::ServerBuilder builder;
  int ports[3] = {0, 0, 0};
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &ports[0]);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Peer peer("receiver", job);
  ports[1] = peer.Listen();
  Exchanger exchanger("receiver", job);
  ports[2] = exchanger.Listen();
  DFL_CHECK(write(out, ports, sizeof(ports)) == sizeof(ports));
  while (true) pause();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return Median(std::move(ratios));
}

int Main(int argc, char** argv) {
  Job job;
  if (argc > 1) job.rounds = std::max(1, std::atoi(argv[1]));
  if (argc > 2) job.bytes = static_cast<int64_t>(std::atof(argv[2]) * 1e6);
  if (argc > 3) {
    job.chunk_bytes = std::clamp<int64_t>(std::atoll(argv[3]) << 10, 1,
                                          ports::kMaxChunkBytes);
  }
  // Both ends keep freed memory, as the daemon does (learner/process_settings):
  // else page faults hide what the bare stream can do.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  int fds[2];
  DFL_CHECK(pipe(fds) == 0);
  const pid_t child = fork();  // before gRPC has any thread
  if (child == 0) Serve(job, fds[1]);
  int ports[3];
  DFL_CHECK(read(fds[0], ports, sizeof(ports)) == sizeof(ports));

  std::vector<double> bare;
  std::vector<double> transport;
  std::vector<double> daemons;
  {
    const std::string body(job.bytes, 'x');
    const auto channel =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", ports[0]),
                            grpc::InsecureChannelCredentials());
    const auto stub = pb::PeerService::NewStub(channel);
    grpc::ClientContext context;
    const auto stream = stub->Bulk(&context);
    Peer peer("sender", job);
    peer.Connect(ports[1]);
    Exchanger exchanger("sender", job);
    exchanger.Connect(ports[2]);
    BareTransfer(job, body, *stream);  // warm up
    peer.Transfer();
    exchanger.Transfer();
    std::printf("%.1f MB in chunks of %ld KiB, two processes on loopback\n",
                job.bytes / 1e6, static_cast<long>(job.chunk_bytes >> 10));
    std::printf(
        "round  bare MB/s  transport MB/s  ratio  daemons MB/s  ratio\n");
    for (int round = 1; round <= job.rounds; ++round) {
      bare.push_back(job.bytes / 1e6 / BareTransfer(job, body, *stream));
      transport.push_back(job.bytes / 1e6 / peer.Transfer());
      daemons.push_back(job.bytes / 1e6 / exchanger.Transfer());
      std::printf("%5d  %9.0f  %14.0f  %5.2f  %12.0f  %5.2f\n", round,
                  bare.back(), transport.back(), transport.back() / bare.back(),
                  daemons.back(), daemons.back() / bare.back());
    }
    context.TryCancel();
    stream->Finish();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  const double ratio = MedianRatio(daemons, bare);
  std::printf("median %8.0f  %14.0f  %5.2f  %12.0f  %5.2f  (bar: 0.50)\n",
              Median(bare), Median(transport), MedianRatio(transport, bare),
              Median(daemons), ratio);
  return ratio >= 0.5 ? 0 : 1;
}

}  // namespace
}  // namespace dfl::exchange

int main(int argc, char** argv) { return dfl::exchange::Main(argc, argv); }
