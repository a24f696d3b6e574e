#include "daemon/control/control_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"
#include "daemon/control/listen_check.h"
#include "daemon/control/service.h"
#include "daemon/control/timers.h"
#include "daemon/control/unix_listener.h"

namespace dfl::control {
namespace {

constexpr mode_t kSocketMode = 0660;
// The longest message is a signed plan: a record of 8 MiB + 64 KiB.
constexpr int kMaxMessageBytes = (8 << 20) + (128 << 10);
constexpr int kMaxStreamsPerConnection = 64;

class GrpcControlServer : public ControlServer {
 public:
  GrpcControlServer(ControlServerOptions options, Backend& backend)
      : options_(std::move(options)),
        service_(backend, timers_, options_,
                 [this](const std::string& peer) { return NamePeer(peer); }) {}

  ~GrpcControlServer() override {
    service_.Close();
    if (listener_ != nullptr) listener_->Stop();
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now() +
                        absl::ToChronoNanoseconds(options_.shutdown_grace));
    }
  }

  absl::Status Listen() {
    if (!options_.unix_socket.empty()) {
      DFL_ASSIGN_OR_RETURN(
          listener_, UnixListener::Bind(options_.unix_socket, kSocketMode));
      addresses_.push_back(absl::StrCat("unix:", options_.unix_socket));
    }
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               kMaxStreamsPerConnection);
    // Two daemons on one port would share its callers between them.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    std::vector<int> ports(options_.insecure_addresses.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string& address = options_.insecure_addresses[i];
      DFL_RETURN_IF_ERROR(CheckListenAddress(address));
      builder.AddListeningPort(address, grpc::InsecureServerCredentials(),
                               &ports[i]);
    }
    server_ = builder.BuildAndStart();
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string& address = options_.insecure_addresses[i];
      if (server_ == nullptr || ports[i] == 0) {
        return absl::AlreadyExistsError(absl::StrCat(
            "control address ", address,
            ": cannot listen there; it may be in use: give another port"));
      }
      DFL_ASSIGN_OR_RETURN(HostPort bound, ParseHostPort(address));
      bound.port = ports[i];
      addresses_.push_back(bound.ToString());
    }
    if (server_ == nullptr) {
      return absl::InternalError("the control service did not start");
    }
    if (listener_ != nullptr) {
      listener_->Start([server = server_.get()](int fd) {
        grpc::AddInsecureChannelFromFd(server, fd);
      });
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const override {
    return addresses_;
  }

 private:
  // "fd:17", "ipv4:10.0.0.7:5123", "ipv6:%5Bfd00::1%5D:5123".
  std::string NamePeer(const std::string& peer) const {
    absl::string_view text = peer;
    if (absl::ConsumePrefix(&text, "fd:")) {
      int fd = -1;
      if (listener_ != nullptr && absl::SimpleAtoi(text, &fd)) {
        return listener_->Describe(fd);
      }
    }
    if (!absl::ConsumePrefix(&text, "ipv4:")) {
      absl::ConsumePrefix(&text, "ipv6:");
    }
    return absl::StrReplaceAll(text, {{"%5B", "["}, {"%5D", "]"}});
  }

  const ControlServerOptions options_;
  Timers timers_;
  std::unique_ptr<UnixListener> listener_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(
    ControlServerOptions options, Backend& backend) {
  auto server =
      std::make_unique<GrpcControlServer>(std::move(options), backend);
  DFL_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace dfl::control
