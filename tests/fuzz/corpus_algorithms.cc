// States of every algorithm in the midst of a run.
#include <string>

#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithms/catalogue.h"
#include "tests/fuzz/corpus_writer.h"
#include "tests/unit/core/four_nodes.h"

namespace dfl::fuzz {

void PutAlgorithms(const CorpusWriter& corpus) {
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    core::FourNodes network(info);
    network.RunToStep(7);
    network.Run(0.35);  // late gradients and one late parcel come
    corpus.Put("algorithm_state", info.name,
               core::SerializeState(network.algorithm(0).ExportState()));
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
