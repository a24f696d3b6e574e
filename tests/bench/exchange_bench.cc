// How fast chunks go between two processes over loopback: GrpcTransport beside
// a bare gRPC stream of the same chunks, one after the other in each round.
//
//   exchange_bench [rounds] [megabytes] [KiB a chunk]
//
// 44.7 MB are an 11 M parameter model as dense fp32. Prints every round and the
// medians; exits 1 when the transport has less than half of the bare rate.
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
#include "daemon/base/check.h"
#include "daemon/exchange/address.h"
#include "daemon/exchange/grpc_transport.h"
#include "dfl/peer/v1/peer.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

struct Job {
  int rounds = 9;
  int64_t bytes = 44'700'000;
  int64_t chunk_bytes = 512 << 10;
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

// The receiving process: writes its two ports to `out`, serves until killed.
[[noreturn]] void Serve(const Job& job, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  BareService service(job);
  grpc::ServerBuilder builder;
  int ports[2] = {0, 0};
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &ports[0]);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Peer peer("receiver", job);
  ports[1] = peer.Listen();
  DFL_CHECK(write(out, ports, sizeof(ports)) == sizeof(ports));
  while (true) pause();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  Job job;
  if (argc > 1) job.rounds = std::max(1, std::atoi(argv[1]));
  if (argc > 2) job.bytes = static_cast<int64_t>(std::atof(argv[2]) * 1e6);
  if (argc > 3) {
    job.chunk_bytes = std::clamp<int64_t>(std::atoll(argv[3]) << 10, 1,
                                          ports::kMaxChunkBytes);
  }
  int fds[2];
  DFL_CHECK(pipe(fds) == 0);
  const pid_t child = fork();  // before gRPC has any thread
  if (child == 0) Serve(job, fds[1]);
  int ports[2];
  DFL_CHECK(read(fds[0], ports, sizeof(ports)) == sizeof(ports));

  std::vector<double> bare;
  std::vector<double> ours;
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
    BareTransfer(job, body, *stream);  // warm up
    peer.Transfer();
    std::printf("%.1f MB in chunks of %ld KiB, two processes on loopback\n",
                job.bytes / 1e6, static_cast<long>(job.chunk_bytes >> 10));
    std::printf("round  bare MB/s  transport MB/s  ratio\n");
    for (int round = 1; round <= job.rounds; ++round) {
      bare.push_back(job.bytes / 1e6 / BareTransfer(job, body, *stream));
      ours.push_back(job.bytes / 1e6 / peer.Transfer());
      std::printf("%5d  %9.0f  %14.0f  %5.2f\n", round, bare.back(),
                  ours.back(), ours.back() / bare.back());
    }
    context.TryCancel();
    stream->Finish();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / bare[i]);
  const double ratio = Median(ratios);
  std::printf("median %8.0f  %14.0f  %5.2f  (bar: 0.50)\n", Median(bare),
              Median(ours), ratio);
  return ratio >= 0.5 ? 0 : 1;
}

}  // namespace
}  // namespace dfl::exchange

int main(int argc, char** argv) { return dfl::exchange::Main(argc, argv); }
