#include "daemon/control/gate.h"

#include <google/protobuf/descriptor.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

Role FromProto(pb::Role role) {
  switch (role) {
    case pb::ROLE_VIEWER:
      return Role::kViewer;
    case pb::ROLE_OPERATOR:
      return Role::kOperator;
    case pb::ROLE_ADMIN:
      return Role::kAdmin;
    default:
      return Role::kNone;
  }
}

const char* WithArticle(Role role) {
  switch (role) {
    case Role::kViewer:
      return "a viewer";
    case Role::kOperator:
      return "an operator";
    case Role::kAdmin:
      return "an admin";
    default:
      return "nobody";
  }
}

std::string TooLow(const Caller& caller, absl::string_view method, Role least) {
  return absl::StrCat(
      caller.name, " is ", WithArticle(caller.role), " here, and ", method,
      " takes ", WithArticle(least), "; ",
      caller.local ? "call it as root, or have the user named in control.admins"
                   : "name the folder of an operator's or admin's certificate "
                     "with --identity");
}

}  // namespace

std::map<std::string, Role, std::less<>> LeastRoles() {
  std::map<std::string, Role, std::less<>> roles;
  const google::protobuf::ServiceDescriptor* service =
      pb::GetVersionRequest::descriptor()->file()->FindServiceByName(
          "ControlService");
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service->method(i);
    const Role least = FromProto(method.options().GetExtension(pb::least_role));
    if (least != Role::kNone) roles.emplace(method.name(), least);
  }
  return roles;
}

Gate::Gate(const Callers& callers,
           std::function<void(const AuditRecord&)> audit)
    : callers_(callers), least_(LeastRoles()), audit_(std::move(audit)) {}

absl::StatusOr<Caller> Gate::Enter(const grpc::CallbackServerContext& context,
                                   absl::string_view method) const {
  return Check(ConnectionOf(context), method);
}

std::function<absl::Status()> Gate::Guard(
    const grpc::CallbackServerContext& context,
    absl::string_view method) const {
  return
      [this, connection = ConnectionOf(context), name = std::string(method)] {
        return Check(connection, name).status();
      };
}

absl::StatusOr<Caller> Gate::Check(const Connection& connection,
                                   absl::string_view method) const {
  Identified found = callers_.Identify(connection);
  const auto least = least_.find(method);
  if (least != least_.end() && found.refusal.empty() &&
      found.caller.role >= least->second) {
    return std::move(found.caller);
  }
  absl::Status refused = absl::PermissionDeniedError(
      !found.refusal.empty()
          ? found.refusal
          : TooLow(found.caller, method,
                   least == least_.end() ? Role::kNone : least->second));
  if (audit_) {
    audit_({std::move(found.caller), absl::StrCat("call ", method), refused});
  }
  return refused;
}

}  // namespace dfl::control
