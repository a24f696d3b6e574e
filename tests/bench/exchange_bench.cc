// How fast a model goes between two processes over loopback, in three ways, one
// after the other in each round:
//
//   bare       the chunks over a plain gRPC stream, counted at the other end
//   transport  the same chunks over GrpcTransport
//   daemons    all that two daemons do: a snapshot is encoded as dense fp32,
//              announced, sent, acknowledged chunk by chunk, put together,
//              checked and decoded (runtime::Transfers on Links)
//
// and each in plain text and over TLS, where the bare stream is over TLS too.
//
//   exchange_bench [rounds] [megabytes] [KiB a chunk]
//
// 44.7 MB are an 11 M parameter model as dense fp32; chunks are as large as the
// daemon's, 256 KiB. Prints every round and the medians. Exits 1 when the
// daemons have less than half of the bare rate in plain text, or when TLS costs
// them more than the bare stream: their share of its rate over TLS is below
// 0.85 of their share in plain text.
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
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
#include "daemon/exchange/peer_gate.h"
#include "daemon/net/network_security.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/transfers/snapshot.h"
#include "daemon/runtime/transfers/transfers.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/credentials.h"
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
  Peer(const std::string& name, const Job& job, net::NetworkSecurity* security)
      : loop_("bench"), job_(job), body_(job.bytes, 'x') {
    GrpcTransportOptions options;
    options.security = security;
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
  Exchanger(const std::string& name, const Job& job,
            net::NetworkSecurity* security)
      : loop_("bench"), worker_(loop_, "bench"), parameters_(job.bytes / 4) {
    GrpcTransportOptions transport;
    transport.security = security;
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
  std::optional<runtime::Refusal> Recheck(
      const NodeId&, ports::TransferKind, uint64_t,
      const runtime::ModelLengths&) override {
    return std::nullopt;
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

// A network of two: what each shows, made before they part.
struct Network {
  std::shared_ptr<const tls::Credentials> sender;
  std::shared_ptr<const tls::Credentials> receiver;
};

Network MakeNetwork() {
  const tls::Validity validity = {absl::Now(), absl::Hours(24)};
  const auto authority = tls::Authority::Make("bench", validity);
  DFL_CHECK(authority.ok());
  const auto issue = [&](const std::string& name) {
    const tls::PrivateKey key = tls::PrivateKey::Generate();
    const tls::Identity identity = {"bench", tls::Role::kNode, name};
    const auto leaf = authority->Issue(key, identity, validity);
    DFL_CHECK(leaf.ok());
    return std::make_shared<const tls::Credentials>(
        tls::Credentials{identity,
                         {authority->certificate()},
                         {*leaf},
                         key,
                         authority->certificate().ToPem(),
                         leaf->ToPem(),
                         key.ToPem()});
  };
  return {issue("sender"), issue("receiver")};
}

class Security {
 public:
  explicit Security(
      const std::shared_ptr<const tls::Credentials>& credentials) {
    DFL_CHECK(mkdtemp(folder_) != nullptr);
    auto made = net::NetworkSecurity::Create(folder_);
    DFL_CHECK(made.ok());
    security_ = *std::move(made);
    DFL_CHECK(security_->Use(credentials).ok());
  }
  ~Security() {
    security_.reset();
    rmdir(folder_);
  }
  Security(const Security&) = delete;
  Security& operator=(const Security&) = delete;

  net::NetworkSecurity* get() const { return security_.get(); }

 private:
  char folder_[32] = "/tmp/exchange_bench.XXXXXX";
  std::unique_ptr<net::NetworkSecurity> security_;
};

struct Ports {
  int bare = 0;
  int transport = 0;
  int daemons = 0;
};

// What one wire's three ways are received by; no `security`: plain text.
class Receiver {
 public:
  Receiver(const Job& job, net::NetworkSecurity* security)
      : service_(job),
        peer_("receiver", job, security),
        exchanger_("receiver", job, security) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0",
                             security == nullptr
                                 ? grpc::InsecureServerCredentials()
                                 : security->ServerCredentials(PeerRoles()),
                             &ports_.bare);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ports_.transport = peer_.Listen();
    ports_.daemons = exchanger_.Listen();
  }
  const Ports& ports() const { return ports_; }

 private:
  BareService service_;
  Peer peer_;
  Exchanger exchanger_;
  std::unique_ptr<grpc::Server> server_;
  Ports ports_;
};

// The receiving process: writes the ports of both wires to `out`, serves until
// killed.
[[noreturn]] void Serve(const Job& job, const Network& network, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Security security(network.receiver);
  const Receiver plain(job, nullptr);
  const Receiver tls(job, security.get());
  const Ports ports[2] = {plain.ports(), tls.ports()};
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

// The three ways over one wire, and their rates in MB/s.
class Sender {
 public:
  Sender(const std::string& wire, const Job& job, const Ports& ports,
         net::NetworkSecurity* security)
      : wire_(wire),
        job_(job),
        body_(job.bytes, 'x'),
        peer_("sender", job, security),
        exchanger_("sender", job, security) {
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::InsecureChannelCredentials();
    if (security != nullptr) {
      credentials = *security->ChannelCredentials(PeerRoles(), nullptr);
    }
    stub_ = pb::PeerService::NewStub(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", ports.bare), credentials));
    stream_ = stub_->Bulk(&context_);
    peer_.Connect(ports.transport);
    exchanger_.Connect(ports.daemons);
    BareTransfer(job_, body_, *stream_);  // warm up
    peer_.Transfer();
    exchanger_.Transfer();
  }
  ~Sender() {
    context_.TryCancel();
    stream_->Finish();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void Round(int round) {
    bare_.push_back(job_.bytes / 1e6 / BareTransfer(job_, body_, *stream_));
    transport_.push_back(job_.bytes / 1e6 / peer_.Transfer());
    daemons_.push_back(job_.bytes / 1e6 / exchanger_.Transfer());
    std::printf("%-5s %5d  %9.0f  %14.0f  %5.2f  %12.0f  %5.2f\n",
                wire_.c_str(), round, bare_.back(), transport_.back(),
                transport_.back() / bare_.back(), daemons_.back(),
                share(round));
  }
  void PrintMedians() const {
    std::printf("%-5s median %8.0f  %14.0f  %5.2f  %12.0f  %5.2f\n",
                wire_.c_str(), Median(bare_), Median(transport_),
                MedianRatio(transport_, bare_), Median(daemons_), share());
  }
  // Of the bare rate that the daemons have, in a round (from 1) and in all.
  double share(int round) const {
    return daemons_[round - 1] / bare_[round - 1];
  }
  double share() const { return MedianRatio(daemons_, bare_); }

 private:
  const std::string wire_;
  const Job job_;
  const std::string body_;
  Peer peer_;
  Exchanger exchanger_;
  std::unique_ptr<pb::PeerService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::BulkRequest, pb::BulkResponse>>
      stream_;
  std::vector<double> bare_;
  std::vector<double> transport_;
  std::vector<double> daemons_;
};

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
  const Network network = MakeNetwork();
  int fds[2];
  DFL_CHECK(pipe(fds) == 0);
  const pid_t child = fork();  // before gRPC has any thread
  if (child == 0) Serve(job, network, fds[1]);
  Ports ports[2];
  DFL_CHECK(read(fds[0], ports, sizeof(ports)) == sizeof(ports));

  double plain_share = 0;
  double cost = 0;
  {
    const Security security(network.sender);
    Sender plain("plain", job, ports[0], nullptr);
    Sender tls("TLS", job, ports[1], security.get());
    std::printf("%.1f MB in chunks of %ld KiB, two processes on loopback\n",
                job.bytes / 1e6, static_cast<long>(job.chunk_bytes >> 10));
    std::printf(
        "wire  round  bare MB/s  transport MB/s  ratio  daemons MB/s  ratio\n");
    std::vector<double> costs;
    for (int round = 1; round <= job.rounds; ++round) {
      plain.Round(round);
      tls.Round(round);
      costs.push_back(tls.share(round) / plain.share(round));
    }
    plain.PrintMedians();
    tls.PrintMedians();
    plain_share = plain.share();
    cost = Median(std::move(costs));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  std::printf(
      "plain share %.2f (bar: 0.50), TLS share / plain share %.2f (bar: "
      "0.85)\n",
      plain_share, cost);
  return plain_share >= 0.5 && cost >= 0.85 ? 0 : 1;
}

}  // namespace
}  // namespace dfl::exchange

int main(int argc, char** argv) { return dfl::exchange::Main(argc, argv); }
