// Keeps a gRPC server from telling its services and methods: a program that is
// linked with gRPC's reflection has it in every server otherwise.
#ifndef DFL_NET_NO_REFLECTION_H_
#define DFL_NET_NO_REFLECTION_H_

#include <grpcpp/impl/server_builder_option.h>
#include <grpcpp/impl/server_builder_plugin.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace dfl::net {

// For ServerBuilder::SetOption.
class NoReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* /*arguments*/) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    plugins->erase(
        std::remove_if(plugins->begin(), plugins->end(),
                       [](const std::unique_ptr<grpc::ServerBuilderPlugin>& p) {
                         return p->name() == "proto_server_reflection";
                       }),
        plugins->end());
  }
};

}  // namespace dfl::net

#endif  // DFL_NET_NO_REFLECTION_H_
