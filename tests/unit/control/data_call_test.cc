// What a node tells of its data, to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/control/tls_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DataCall : public TlsServerTest {
 protected:
  std::unique_ptr<client::ControlClient> ClientAs(tls::Role role) {
    StartTls(tls::MakeCredentials(authority_, tls::NodeIdentity("box-1")));
    client::ClientOptions options;
    options.identity = [this, role] {
      const auto own =
          tls::MakeCredentials(authority_, {"plant-4", role, "alice"});
      return client::ClientIdentity{own->bundle_pem, own->chain_pem,
                                    own->key_pem};
    };
    return *client::ControlClient::Connect(address(), options);
  }
};

TEST_F(DataCall, EveryFieldComesAcross) {
  NodeData data;
  data.offer.task = core::Task::kRegression;
  data.offer.classes = {"cat", "dog"};
  data.offer.classes_stated = true;
  data.offer.class_places = {"a.csv: line 2", "a.csv: line 3"};
  data.offer.features = {"age", "bp"};
  data.offer.shape = {2};
  data.offer.shape_is_at_least = true;
  data.offer.input = {255,
                      core::InputScaling::Per::kFeature,
                      core::InputScaling::Over::kNetwork,
                      {0.5F, 1.5F},
                      {2, 3}};
  data.offer.divide_stated = true;
  data.offer.standardise_stated = true;
  data.offer.moments = {7, {1, 2}, {3, 4}};
  data.offer.loss = "mse";
  data.offer.model = "ab";
  data.contract = core::DataContract();
  data.contract->classes = {"x", "y"};
  data.report = {"csv", 10,      5, {{"cat", 6, 2}}, {{"age", 1, 9, 4, 3}},
                 1200,  {"look"}};
  backend_.SetData(data);
  Start();
  const auto told = client_->Data("plan");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_THAT(backend_.asked(), ElementsAre("plan"));
  EXPECT_EQ(told->node, "box-1");
  EXPECT_EQ(told->offer.task, "regression");
  EXPECT_EQ(told->offer.classes, data.offer.classes);
  EXPECT_TRUE(told->classes_stated);
  EXPECT_EQ(told->class_places, data.offer.class_places);
  EXPECT_EQ(told->offer.features, data.offer.features);
  EXPECT_EQ(told->offer.shape, data.offer.shape);
  EXPECT_TRUE(told->shape_is_at_least);
  EXPECT_EQ(told->offer.input.divide, 255);
  EXPECT_EQ(told->offer.input.per, "feature");
  EXPECT_EQ(told->offer.input.over, "network");
  EXPECT_EQ(told->offer.input.mean, data.offer.input.mean);
  EXPECT_EQ(told->offer.input.std, data.offer.input.std);
  EXPECT_TRUE(told->divide_stated);
  EXPECT_TRUE(told->standardise_stated);
  EXPECT_EQ(told->moments.count, 7);
  EXPECT_EQ(told->moments.sums, data.offer.moments.sums);
  EXPECT_EQ(told->moments.squares, data.offer.moments.squares);
  EXPECT_EQ(told->offer.loss, "mse");
  EXPECT_EQ(told->offer.model, "ab");
  ASSERT_TRUE(told->contract.has_value());
  EXPECT_THAT(told->contract->classes, ElementsAre("x", "y"));
  EXPECT_EQ(told->format, "csv");
  EXPECT_EQ(told->train_rows, 10);
  EXPECT_EQ(told->test_rows, 5);
  ASSERT_EQ(told->classes.size(), 1u);
  EXPECT_EQ(told->classes[0].train_rows, 6);
  EXPECT_EQ(told->classes[0].test_rows, 2);
  ASSERT_EQ(told->features.size(), 1u);
  EXPECT_EQ(told->features[0].max, 9);
  EXPECT_EQ(told->features[0].mean, 4);
  EXPECT_EQ(told->features[0].missing, 3);
  EXPECT_EQ(told->feature_count, 1200);
  EXPECT_THAT(told->warnings, ElementsAre("look"));
}

TEST_F(DataCall, AViewerReadsAndHasNoModelLookedAt) {
  const auto viewer = ClientAs(tls::Role::kViewer);
  EXPECT_TRUE(viewer->Data("").ok());
  const auto refused = viewer->Data("model: {kind: torchscript}");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("operator"));
  EXPECT_THAT(backend_.asked(), ElementsAre(""));
}

TEST_F(DataCall, AnOperatorHasAPlanLookedAt) {
  const auto client = ClientAs(tls::Role::kOperator);
  EXPECT_TRUE(client->Data("plan").ok());
  backend_.FailData(absl::NotFoundError("m.pt: not there"));
  EXPECT_EQ(client->Data("plan").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DataCall, ALongPlanIsRefusedUnread) {
  Start();
  EXPECT_EQ(client_->Data(std::string((8 << 20) + 1, ' ')).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(backend_.asked().empty());
}

}  // namespace
}  // namespace dfl::control
