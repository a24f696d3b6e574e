// Samples of a node for tests.
#ifndef DFL_TESTS_UNIT_WEB_SAMPLE_OF_H_
#define DFL_TESTS_UNIT_WEB_SAMPLE_OF_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/web/sample.h"

namespace dfl::web {

// A node in full swing with so many neighbours, of which the first is behind by
// 7 steps.
inline Sample SampleOf(int neighbours) {
  Sample sample;
  control::DaemonStatus& daemon = sample.daemon;
  daemon.version = "0.1.0";
  daemon.certificate_days = 90;
  daemon.memory_bytes = 1 << 20;
  daemon.memory_limit_bytes = 1 << 30;
  for (const char* reason :
       {"plaintext", "abandoned", "handshake-timeout", "crowded-out",
        "too-many-connections", "too-many-of-one-peer", "unknown-authority",
        "expired", "wrong-cluster", "wrong-name"}) {
    daemon.refused[reason] = 1;
  }
  runtime::NodeStatus& node = daemon.node;
  node.node = NodeId("anna");
  node.phase = ports::Phase::kTraining;
  node.plan_version = 3;
  node.algorithm = "pame";
  node.topology = "complete";
  node.format = "random int8";
  node.model = "cnn";
  node.member_count = neighbours + 1;
  node.spectral_gap = 0.5;
  node.step = 100;
  node.round = 20;
  node.gradients = 100;
  node.loss = 0.25;
  node.evaluated = true;
  node.evaluated_step = 90;
  node.evaluation.loss = 0.5;
  node.evaluation.accuracy = 0.875;
  node.evaluation.macro_f1 = 0.75;
  node.gauges = {{"sigma", 0.1},
                 {"consensus_distance", 2.5},
                 {"mass_imbalance", 1e-12},
                 {"omega", 1}};
  node.dense_bytes_sent = 4000000;
  for (const char* reason :
       {"other-run", "other-model", "other-algorithm", "not-ready", "busy",
        "bad-message", "not-a-neighbour", "unknown-codec", "older-epoch"}) {
    node.rejected[reason] = 2;
  }
  for (int i = 0; i < neighbours; ++i) {
    runtime::PeerStatus peer;
    peer.node = NodeId(absl::StrCat("node-", i));
    peer.neighbour = peer.linked = peer.mixing = true;
    peer.step = i == 0 ? 93 : 100;
    peer.plan_version = 3;
    node.peers.push_back(peer);
  }
  for (const char* state : {"alone", "joining", "member", "degraded",
                            "draining", "left", "dead", "suspect"}) {
    sample.members[state] = 0;
  }
  sample.members["member"] = neighbours + 1;
  sample.bytes = {{"random int8", {1000, 2000}}, {"dense fp32", {50, 60}}};
  sample.checkpoint_age = absl::Seconds(30);
  sample.log_lines = {{"debug", 0}, {"info", 5}, {"warning", 1}, {"error", 0}};
  return sample;
}

}  // namespace dfl::web

#endif  // DFL_TESTS_UNIT_WEB_SAMPLE_OF_H_
