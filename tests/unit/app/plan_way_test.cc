// A plan's way from the command to the node: dflctl in this process, a control
// server, the backend and a node.
#include <fstream>
#include <sstream>
#include <string>

#include "cli/console.h"
#include "cli/dflctl.h"
#include "daemon/control/control_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/app/backend_stage.h"
#include "tests/unit/control/socket_folder.h"

namespace dfl::app {
namespace {

using testing::HasSubstr;

class PlanWay : public testing::Test {
 protected:
  PlanWay() {
    BackendOptions options;
    options.steps.parse = [this](auto text, auto file, auto complete) {
      ++parsed_;
      return config::ParseCheckedPlan(text, file, complete);
    };
    options.steps.derive = [this](core::CheckedPlan plan, const NodeId& self) {
      ++derived_;
      return core::Derive(std::move(plan), self);
    };
    stage_ = std::make_unique<BackendStage>(
        disk_, learners_, std::move(options), nullptr, &records_disk_,
        /*insecure_records=*/true);
    stage_->backend().Connect();
    control::ControlServerOptions server;
    server.unix_socket = folder_.File("anna.sock");
    auto started = control::ControlServer::Start(server, stage_->backend());
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server_ = *std::move(started);
  }

  // The exit code; what it says on stderr is kept.
  int Run(std::vector<std::string> arguments) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    cli::Io io{in, out, err};
    io.is_root = false;
    arguments.push_back("--target=unix:" + folder_.File("anna.sock"));
    const int code = cli::Dflctl(arguments, io);
    said_ = err.str();
    return code;
  }

  simports::SimFiles disk_;
  simports::SimFiles records_disk_;
  FakeLearners learners_;
  SocketFolder folder_;
  int parsed_ = 0;
  int derived_ = 0;
  std::unique_ptr<BackendStage> stage_;
  std::unique_ptr<control::ControlServer> server_;
  std::string said_;
};

TEST_F(PlanWay, IsOneParseAndOneDerivation) {
  std::ofstream(folder_.File("plan.yaml")) << kPlanYaml;
  ASSERT_EQ(Run({"plan", "apply", folder_.File("plan.yaml")}), 0) << said_;
  EXPECT_EQ(stage_->Status().plan_version, 1u);
  EXPECT_EQ(parsed_, 1);
  EXPECT_EQ(derived_, 1);
  ASSERT_EQ(Run({"participation", "set", "p=0.05"}), 0) << said_;
  EXPECT_EQ(stage_->Status().plan_version, 2u);
  EXPECT_THAT(stage_->backend().Plan().yaml, HasSubstr("p: 0.05"));
  EXPECT_EQ(parsed_, 2);
  EXPECT_EQ(derived_, 2);
}

}  // namespace
}  // namespace dfl::app
