// States of every algorithm in the midst of a run, and checkpoints of some.
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/simports/sim_files.h"
#include "daemon/store/checkpoint_files.h"
#include "tests/fuzz/corpus_writer.h"
#include "tests/fuzz/pieces.h"
#include "tests/unit/core/four_nodes.h"

namespace dfl::fuzz {
namespace {

runtime::Checkpoint CheckpointOf(core::FourNodes& network) {
  runtime::Checkpoint checkpoint;
  runtime::CheckpointHead& head = checkpoint.head;
  core::Algorithm& algorithm = network.algorithm(0);
  checkpoint.algorithm = algorithm.ExportState();
  head.node = "node-0";
  head.run_id = "run-1";
  head.plan_version = 3;
  head.contract.fill(17);
  head.algorithm = checkpoint.algorithm.algorithm;
  head.step = algorithm.step();
  head.pace = algorithm.pace();
  head.tracker_epoch = 4;
  head.partners = {"node-1", "node-3"};
  head.decisions.seed = 5;
  head.decisions.generators["asks"] = {1, 2, 3, ~uint64_t{0}};
  head.gradients = 7;
  head.position = ports::BatchPosition{9, 10, 2, 3};
  head.epochs = {4, 0.5, 2, 7};
  auto model = std::make_shared<runtime::Snapshot>();
  for (const float value : network.parameters(0)) {
    model->parameters.push_back(value);
  }
  for (const float value : network.node(0).buffers) {
    model->buffers.push_back(value);
  }
  checkpoint.gradient.assign(model->parameters.size(), 0.5F);
  checkpoint.model = std::move(model);
  return checkpoint;
}

// A file, and the same as its head and what follows it.
void PutCheckpoint(const CorpusWriter& corpus, const std::string& name,
                   const runtime::Checkpoint& checkpoint) {
  constexpr size_t kPrefixBytes = 16;  // magic, version, length of the head
  constexpr size_t kChecksumBytes = 4;
  simports::SimFiles files;
  const std::atomic<bool> go{false};
  DFL_CHECK(store::WriteCheckpoint(files, name, 3, checkpoint, go).ok());
  const std::string file = files.Read(name).value();
  corpus.Put("checkpoint", absl::StrCat(name, "-file"), file);
  const auto head_bytes =
      static_cast<size_t>(static_cast<unsigned char>(file[12]) |
                          static_cast<unsigned char>(file[13]) << 8);
  const size_t body_at = kPrefixBytes + head_bytes + kChecksumBytes;
  corpus.Put("checkpoint", name,
             AsPart(file.substr(kPrefixBytes, head_bytes)) +
                 file.substr(body_at, file.size() - body_at - kChecksumBytes));
}

}  // namespace

void PutAlgorithms(const CorpusWriter& corpus) {
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    core::FourNodes network(info);
    network.RunToStep(7);
    network.Run(0.35);  // late gradients and one late parcel come
    corpus.Put("algorithm_state", info.name,
               core::SerializeState(network.algorithm(0).ExportState()));
    if (info.name == "pame" || info.name == "sgp" || info.name == "draco") {
      PutCheckpoint(corpus, info.name, CheckpointOf(network));
    }
  }
  corpus.Put("algorithm_state", "torn",
             std::string("DFLA\x01\0\0\0\x2c\0\0\0\0\0\0\0\x02", 17));
  corpus.Put(
      "algorithm_state", "long-vector",
      std::string("DFLA....length..\x03\0\0\0sgp\x01\0\0\0\x01\0\0\0x\x03"
                  "\xff\xff\xff\xff\xff\xff\xff\xff....",
                  46));
}

}  // namespace dfl::fuzz
