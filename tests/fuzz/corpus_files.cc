// Files that a node keeps, or takes from others.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/check.h"
#include "daemon/enrol/join_token.h"
#include "daemon/enrol/token_book.h"
#include "daemon/records/record_content.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/runtime/gossip/book_file.h"
#include "daemon/store/node_state.h"
#include "daemon/store/safetensors.h"
#include "tests/fuzz/corpus_writer.h"
#include "tests/fuzz/pieces.h"

namespace dfl::fuzz {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'790'000'000);

void PutNodeStates(const CorpusWriter& corpus) {
  runtime::StateGeneration generation;
  generation.number = 7;
  generation.state.node = "box-1";
  generation.state.starts = 3;
  generation.state.plan = std::make_shared<runtime::KeptPlan>(
      runtime::KeptPlan{"algorithm: {name: pame}\n", 4, "run-1"});
  generation.state.desired_phase = runtime::DesiredPhase::kTraining;
  generation.state.obeyed_order = ~uint64_t{0};
  generation.state.added_peers = {"box-2:7600", "[fd00::2]:7600"};
  const store::NodeStateCodec codec;
  const std::string full = codec.Encode(generation).value();
  corpus.Put("node_state", "full", full);
  corpus.Put("node_state", "torn", full.substr(0, full.size() / 2));
  generation.state = {};
  generation.number = 1;
  corpus.Put("node_state", "least", codec.Encode(generation).value());
  corpus.Put("node_state", "empty", "");
  corpus.Put("node_state", "zeros", std::string(64, '\0'));
}

void PutBooks(const CorpusWriter& corpus) {
  const auto plan =
      records::MakeUnsignedRecord(records::RecordKind::kPlan, "", 1,
                                  "algorithm: {name: pame}\n", "", "ann", kNow);
  const auto labels = records::MakeUnsignedRecord(
      records::RecordKind::kLabels, "box-1", 2,
      records::ToContent(records::LabelsOrder{{{"site", "north"}}}), "", "ann",
      kNow);
  DFL_CHECK(plan.ok() && labels.ok());
  runtime::PastRecord past;
  past.id = {1, "", 7, std::string(32, 'h')};
  past.author = "insecure:ann";
  past.unix_nanos = 5;
  past.text = "24 bytes";
  const std::vector<absl::string_view> current = {*plan, *labels};
  const std::string book = runtime::EncodeBook(current, {past, past});
  corpus.Put("record_book", "two-and-history", book);
  corpus.Put("record_book", "empty", runtime::EncodeBook({}, {}));
  corpus.Put("record_book", "torn", book.substr(0, book.size() - 40));
  corpus.Put(
      "record_book", "long-item",
      std::string("dfl-records 1\nC\xff\xff\xff\xff\xff\xff\xff\xff", 23));
  corpus.Put("record_book", "zeros", std::string(40, '\0'));
}

void PutTokens(const CorpusWriter& corpus) {
  enrol::JoinToken token;
  token.issuer = "0123456789abcdef";
  token.cluster = "plant-4";
  token.node = "box-1";
  token.expires = kNow;
  token.authority_sha256 = std::string(64, 'a');
  token.secret = std::string(enrol::kSecretBytes, 's');
  const std::string text = enrol::ToText(token);
  corpus.Put("join_token", "whole", text);
  corpus.Put("join_token", "with-blanks", absl::StrCat("\n ", text, "\t\n"));
  corpus.Put("join_token", "cut", text.substr(0, 60));
  corpus.Put("join_token", "later-version", "dfl2.AAAA");
  corpus.Put("join_token", "no-base64", "dfl1.*");

  std::string folder =
      (std::filesystem::temp_directory_path() / "dfl_corpus_XXXXXX").string();
  DFL_CHECK(mkdtemp(folder.data()) != nullptr);
  const auto book = enrol::TokenBook::Open(folder);
  DFL_CHECK(book.ok());
  for (const char* node : {"box-1", "box-2"}) {
    DFL_CHECK(book->Create("plant-4", node, std::string(64, 'a'),
                           absl::Hours(24), kNow)
                  .ok());
  }
  DFL_CHECK(book->Revoke(book->List(kNow)->front().id, kNow).ok());
  std::ifstream file(folder + "/tokens", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  corpus.Put("token_book", "two-tokens", bytes);
  corpus.Put("token_book", "cut", bytes.substr(0, bytes.size() - 9));
  corpus.Put("token_book", "empty", "");
  corpus.Put("token_book", "later-version", absl::StrCat("\x08\x09", bytes));
}

// As safetensors_fuzz.cc takes it: options, then header and values apart.
std::string ModelFile(char options, absl::string_view header,
                      absl::string_view values) {
  return absl::StrCat(absl::string_view(&options, 1), AsPart(header), values);
}

void PutModels(const CorpusWriter& corpus) {
  ports::ModelInfo model;
  model.parameters = {{"w", {2, 3}, 0, 6}, {"b", {3}, 6, 3}};
  model.buffers = {{"m", {2}, 0, 2}};
  model.parameter_count = 9;
  model.buffer_count = 2;
  model.aliases = {{"tied", "w"}};
  const std::vector<float> parameters = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<float> buffers = {0.5F, -1};
  const auto source = store::SafetensorsSource::Create(
      model, parameters, buffers, {{"made", "by hand"}});
  DFL_CHECK(source.ok());
  std::string file(source->size(), '\0');
  source->Read(0, absl::MakeSpan(file.data(), file.size()));
  corpus.Put("safetensors", "whole", absl::StrCat(std::string(1, '\0'), file));
  corpus.Put("safetensors", "cut",
             absl::StrCat(std::string(1, '\0'), file.substr(0, 300)));
  corpus.Put("safetensors", "long-header",
             std::string("\0\xff\xff\xff\xff\xff\xff\xff\x7f{}", 11));
  corpus.Put("safetensors", "part",
             ModelFile('\x0b',
                       R"({"w":{"dtype":"F16","shape":[2,3],)"
                       R"("data_offsets":[0,12]}})",
                       "abcdefghijkl"));
  corpus.Put("safetensors", "prefix",
             ModelFile('\x07',
                       R"({"net.b":{"dtype":"F64","shape":[3],)"
                       R"("data_offsets":[0,24]}})",
                       std::string(24, '\0')));
  corpus.Put("safetensors", "overlap",
             ModelFile('\x01',
                       R"({"w":{"dtype":"F32","shape":[2,3],)"
                       R"("data_offsets":[0,24]},"b":{"dtype":"BF16",)"
                       R"("shape":[3],"data_offsets":[8,14]}})",
                       ""));
  corpus.Put("safetensors", "twice",
             ModelFile('\x01', R"({"w":{},"w":{"a":[[[[[[0]]]]]]}})", ""));
}

}  // namespace

void PutFiles(const CorpusWriter& corpus) {
  PutNodeStates(corpus);
  PutBooks(corpus);
  PutTokens(corpus);
  PutModels(corpus);
}

}  // namespace dfl::fuzz
