#include "daemon/config/settings_table.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/host_port.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/setting_makers.h"
#include "daemon/config/values.h"
#include "daemon/tls/identity.h"

namespace dfl::config {
namespace {

absl::Status AnyText(absl::string_view) { return absl::OkStatus(); }

absl::Status NotEmpty(absl::string_view text) {
  return text.empty() ? NotAllowed() : absl::OkStatus();
}

absl::Status HostAndPort(absl::string_view text) {
  return ParseHostPort(text).status();
}

absl::Status PeerAddress(absl::string_view text) {
  DFL_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(text));
  if (address.port == 0) return NotAllowed("port 0 cannot be dialled");
  if (IsWildcard(address.host)) {
    return NotAllowed("an address to listen on is no address to reach");
  }
  return absl::OkStatus();
}

absl::Status AdvertisedAddress(absl::string_view text) {
  if (text.empty()) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(text));
  if (IsWildcard(address.host)) {
    return NotAllowed("an address to listen on is no address to reach");
  }
  return absl::OkStatus();
}

absl::Status IssuerAddress(absl::string_view text) {
  return text.empty() ? absl::OkStatus() : PeerAddress(text);
}

absl::Status ListenAddress(absl::string_view text) {
  return text.empty() ? absl::OkStatus() : HostAndPort(text);
}

absl::Status JoinTokenText(absl::string_view text) {
  if (text.empty() || absl::StartsWith(text, "dfl1.")) return absl::OkStatus();
  return NotAllowed("a join token begins with dfl1.");
}

absl::Status ClusterName(absl::string_view text) {
  if (text.empty()) return absl::OkStatus();
  return tls::ValidateClusterName(text);
}

absl::Status SocketPath(absl::string_view text) {
  if (text.empty() || text[0] != '/') return NotAllowed();
  // sun_path has 108 bytes, one of them the closing zero.
  if (text.size() > 107) {
    return NotAllowed(absl::StrCat("it has ", text.size(), " characters"));
  }
  return absl::OkStatus();
}

absl::Status Device(absl::string_view text) {
  if (text == "cpu" || text == "cuda") return absl::OkStatus();
  const absl::string_view prefix = "cuda:";
  if (absl::StartsWith(text, prefix) && text.size() <= prefix.size() + 3 &&
      ReadUnsigned(text.substr(prefix.size())).has_value()) {
    return absl::OkStatus();
  }
  return NotAllowed();
}

constexpr int64_t kMany = std::numeric_limits<int64_t>::max();

std::vector<Setting> NodeTable() {
  std::vector<Setting> table;
  table.push_back(WithNote(
      Text(
          "name", [](NodeSettings& s) -> std::string& { return s.name; },
          "1 to 63 letters, digits, '-', '_' and '.', the first a letter or "
          "digit",
          [](absl::string_view text) { return ValidateNodeName(text); },
          "Who this node is: its name among the members of a run. Unique in "
          "the network, and the same after a restart."),
      "the host's name"));
  table.push_back(WithNote(
      Text(
          "state_dir",
          [](NodeSettings& s) -> std::string& { return s.state_dir; }, "a path",
          NotEmpty,
          "Folder of what must outlive the daemon: the plan and where the run "
          "stands. One daemon a folder."),
      "$STATE_DIRECTORY under systemd; /var/lib/dfld for root; else "
      "$XDG_STATE_HOME/dfld or ~/.local/state/dfld"));
  table.push_back(Choice<Security>(
      "security", [](NodeSettings& s) -> Security& { return s.security; },
      {{"tls", Security::kTls}, {"insecure", Security::kInsecure}},
      "How network connections are protected. tls: both ends show a "
      "certificate of the network, dflctl cert makes them. insecure: plain "
      "text, and anyone who reaches a port is believed. Only for networks you "
      "trust."));
  table.push_back(WithNote(
      Text(
          "cluster", [](NodeSettings& s) -> std::string& { return s.cluster; },
          "the name of a network, as in dflctl cert init", ClusterName,
          "The network that this node belongs to. Its certificate must be of "
          "that network."),
      "the one that the certificate names"));
  table.push_back(TextList(
      "peers",
      [](NodeSettings& s) -> std::vector<std::string>& { return s.peers; },
      "host:port, IPv6 as [address]:port", PeerAddress,
      "Daemons to connect to. One end of each pair is enough; more can be "
      "added with dflctl peer add, and are kept in state_dir."));
  return table;
}

std::vector<Setting> PlaneTable() {
  std::vector<Setting> table;
  table.push_back(WithNote(
      Text(
          "tls.folder",
          [](NodeSettings& s) -> std::string& { return s.tls.folder; },
          "a path", AnyText,
          "Folder that dflctl cert issue has made for this node: ca.pem, "
          "cert.pem and key.pem. New files in it are taken up at once."),
      "/etc/dfld/tls for root and under systemd; else "
      "$XDG_CONFIG_HOME/dfld/tls or ~/.config/dfld/tls"));
  table.push_back(WithNote(
      Text(
          "tls.bundle",
          [](NodeSettings& s) -> std::string& { return s.tls.bundle; },
          "a path", AnyText,
          "Certificates of the authorities that are trusted, in PEM form. Two "
          "while one replaces the other."),
      "ca.pem in tls.folder"));
  table.push_back(WithNote(
      Text(
          "tls.certificate",
          [](NodeSettings& s) -> std::string& { return s.tls.certificate; },
          "a path", AnyText, "This node's certificate, in PEM form."),
      "cert.pem in tls.folder"));
  table.push_back(WithNote(
      Text(
          "tls.key", [](NodeSettings& s) -> std::string& { return s.tls.key; },
          "a path", AnyText,
          "The key to it, in PEM form, readable for the daemon alone."),
      "key.pem in tls.folder"));
  table.push_back(Text(
      "join.token",
      [](NodeSettings& s) -> std::string& { return s.join.token; },
      "what dflctl token create printed, or \"\" for none", JoinTokenText,
      "With it a node that has no certificate yet gets one when it starts: it "
      "makes a key, and asks the issuer at join.at. It is of no use "
      "afterwards."));
  table.back().is_secret = true;
  table.push_back(Text(
      "join.at", [](NodeSettings& s) -> std::string& { return s.join.at; },
      "host:port, IPv6 as [address]:port, or \"\"", IssuerAddress,
      "Where dflctl token serve, or a node with enrol.listen, answers."));
  table.push_back(Text(
      "enrol.folder",
      [](NodeSettings& s) -> std::string& { return s.enrol.folder; },
      "a path, or \"\" for none", AnyText,
      "Folder of the network's authority, as dflctl cert init made it, with "
      "ca.key. Whoever has that key can admit anybody: one node at most has "
      "it."));
  table.push_back(Text(
      "enrol.listen",
      [](NodeSettings& s) -> std::string& { return s.enrol.listen; },
      "host:port, IPv6 as [address]:port; port 0: the system chooses; \"\" "
      "serves none",
      ListenAddress,
      "Where new nodes redeem the join tokens of enrol.folder. Instead of "
      "dflctl token serve."));
  table.push_back(TextList(
      "peer.listen",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.peer.listen;
      },
      "host:port, IPv6 as [address]:port; port 0: the system chooses; [] dials "
      "out only",
      HostAndPort, "Where other daemons reach this one."));
  table.push_back(WithNote(
      Text(
          "peer.advertise",
          [](NodeSettings& s) -> std::string& { return s.peer.advertise; },
          "host:port; port 0: the one listened on", AdvertisedAddress,
          "The address told to others, where it is not the one listened on: "
          "behind NAT, in a container, or when listening on 0.0.0.0."),
      "the host's name and the port listened on"));
  table.push_back(WithNote(
      Text(
          "control.socket",
          [](NodeSettings& s) -> std::string& { return s.control.socket; },
          "an absolute path of at most 107 characters", SocketPath,
          "Unix socket on which dflctl reaches this daemon."),
      "/run/dfld/control.sock for root and under systemd; else "
      "$XDG_RUNTIME_DIR/dfld/control.sock"));
  table.push_back(TextList(
      "control.listen",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.control.listen;
      },
      "host:port, IPv6 as [address]:port; port 0: the system chooses",
      HostAndPort,
      "Where control is served on the network as well: with security: tls to "
      "people who show a certificate of the network, else to whoever reaches "
      "it."));
  table.push_back(WithNote(
      TextList(
          "control.admins",
          [](NodeSettings& s) -> std::vector<std::string>& {
            return s.control.admins;
          },
          "users by name or number, groups as \"@name\"", NotEmpty,
          "Who may steer this node on the unix socket. What concerns the whole "
          "network needs a person's signature, also from them."),
      "root, the daemon's user, and the members of its group"));
  table.push_back(TextList(
      "control.viewers",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.control.viewers;
      },
      "users by name or number, groups as \"@name\"", NotEmpty,
      "Who may only read on the unix socket: status, plan and settings."));
  return table;
}

std::vector<Setting> DataTable() {
  using data::Format;
  using data::Header;
  using data::Task;
  std::vector<Setting> table;
  table.push_back(Choice<Format>(
      "data.format",
      [](NodeSettings& s) -> Format& { return s.data.common.format; },
      {{"idx", Format::kIdx},
       {"cifar10", Format::kCifar10},
       {"libsvm", Format::kLibsvm},
       {"csv", Format::kCsv},
       {"npz", Format::kNpz},
       {"npy", Format::kNpy}},
      "What the data files are. idx (MNIST's) and npy take two paths, first "
      "the features, then the labels; npz takes one; the others take one or "
      "more, which are joined. Files may be gzipped."));
  table.push_back(Choice<Task>(
      "data.task", [](NodeSettings& s) -> Task& { return s.data.common.task; },
      {{"classification", Task::kClassification},
       {"regression", Task::kRegression}},
      "Whether labels are classes or numbers. Regression reads libsvm, csv, "
      "npz and npy."));
  table.push_back(Integer(
      "data.classes",
      [](NodeSettings& s) -> int64_t& { return s.data.common.classes; }, 0,
      65536, "",
      "Number of classes; 0: as many as the training files show. Set it where "
      "this node's files may lack a class."));
  table.push_back(TextList(
      "data.label_values",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.common.label_values;
      },
      "labels as the files spell them", AnyText,
      "csv, libsvm: how class 0, 1, ... are spelt. Empty: integers stand for "
      "themselves, other spellings are numbered in sorted order."));
  table.push_back(Integer(
      "data.features",
      [](NodeSettings& s) -> int64_t& { return s.data.common.features; }, 0,
      kMany, "",
      "Numbers in one row; 0: as the files say. libsvm needs it where the last "
      "features may be absent."));
  table.push_back(IntegerList(
      "data.shape",
      [](NodeSettings& s) -> std::vector<int64_t>& {
        return s.data.common.shape;
      },
      "integers of at least 1, such as [1, 28, 28]",
      "Shape of one row; empty: as the format says."));
  table.push_back(Text(
      "data.label_column",
      [](NodeSettings& s) -> std::string& {
        return s.data.common.label_column;
      },
      "a column's name, or its index from 0; -1: the last", NotEmpty,
      "csv: the column that holds the label."));
  table.push_back(TextList(
      "data.drop_columns",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.common.drop_columns;
      },
      "names or indices of columns", NotEmpty,
      "csv: columns that are no features."));
  table.push_back(Choice<Header>(
      "data.header",
      [](NodeSettings& s) -> Header& { return s.data.common.header; },
      {{"auto", Header::kAuto},
       {"yes", Header::kYes},
       {"no", Header::kNo},
       {"skip", Header::kSkip}},
      "csv: whether the first line holds names. auto: if a feature in it is "
      "not a number; skip: pass over it unread."));
  Setting delimiter = Named("data.delimiter", "", "one character, or tab",
                            "csv: what stands between two columns.");
  delimiter.set = [](const RawValue& value, NodeSettings& settings) {
    if (value.is_list) return NotAllowed();
    if (value.text == "tab") {
      settings.data.common.delimiter = '\t';
      return absl::OkStatus();
    }
    if (value.text.size() != 1) return NotAllowed();
    settings.data.common.delimiter = value.text[0];
    return absl::OkStatus();
  };
  delimiter.get = [](const NodeSettings& settings) -> std::string {
    const char c = settings.data.common.delimiter;
    return c == '\t' ? "tab" : WriteText(std::string(1, c));
  };
  table.push_back(std::move(delimiter));
  table.push_back(Text(
      "data.features_key",
      [](NodeSettings& s) -> std::string& {
        return s.data.common.features_key;
      },
      "a name", NotEmpty, "npz: the array of features."));
  table.push_back(Text(
      "data.labels_key",
      [](NodeSettings& s) -> std::string& { return s.data.common.labels_key; },
      "a name", NotEmpty, "npz: the array of labels."));
  table.push_back(Size(
      "data.max_bytes",
      [](NodeSettings& s) -> uint64_t& { return s.data.common.max_bytes; },
      4096, "A data set that takes more memory than this is refused."));
  table.push_back(TextList(
      "data.train.paths",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.train_paths;
      },
      "paths, as many as data.format takes", NotEmpty,
      "Files to train on. A node cannot start without."));
  table.push_back(Integer(
      "data.train.rows",
      [](NodeSettings& s) -> int64_t& { return s.data.train_rows; }, 0, kMany,
      "rows",
      "Rows that the training files must hold, so that a cut file is noticed; "
      "0: any number."));
  table.push_back(TextList(
      "data.test.paths",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.data.test_paths;
      },
      "paths, as many as data.format takes", NotEmpty,
      "Files to evaluate on; empty: the node does not evaluate."));
  table.push_back(Integer(
      "data.test.rows",
      [](NodeSettings& s) -> int64_t& { return s.data.test_rows; }, 0, kMany,
      "rows", "Rows that the test files must hold; 0: any number."));
  return table;
}

std::vector<Setting> StandardiseTable() {
  using Per = StandardiseSettings::Per;
  std::vector<Setting> table;
  table.push_back(Choice<Per>(
      "data.standardise.per",
      [](NodeSettings& s) -> Per& { return s.data.standardise.per; },
      {{"none", Per::kNone},
       {"all", Per::kAll},
       {"channel", Per::kChannel},
       {"feature", Per::kFeature}},
      "Take mean and deviation from this node's own training rows: one pair "
      "for "
      "all values, one a channel of images or one a feature. Nodes with "
      "different rows then scale differently; give numbers below to have them "
      "agree."));
  table.push_back(NumberList(
      "data.standardise.mean",
      [](NodeSettings& s) -> std::vector<float>& {
        return s.data.standardise.mean;
      },
      "numbers: one, one a channel or one a feature", false,
      "What is subtracted, in the units after bytes became [0, 1]."));
  table.push_back(NumberList(
      "data.standardise.std",
      [](NodeSettings& s) -> std::vector<float>& {
        return s.data.standardise.std;
      },
      "numbers of at least 0, as many as data.standardise.mean; 0 counts as 1",
      true, "What is divided by."));
  table.push_back(Text(
      "data.standardise.file",
      [](NodeSettings& s) -> std::string& { return s.data.standardise.file; },
      "a path, or \"\" for none", AnyText,
      "CSV with the columns mean and std and one line a feature, the same file "
      "on all nodes."));
  return table;
}

std::vector<Setting> PartitionTable() {
  std::vector<Setting> table;
  table.push_back(Choice<std::string>(
      "data.partition.kind",
      [](NodeSettings& s) -> std::string& { return s.data.partition.kind; },
      {{"none", "none"},
       {"iid", "iid"},
       {"quantity", "quantity"},
       {"dirichlet", "dirichlet"},
       {"classes", "classes"},
       {"explicit", "explicit"}},
      "For experiments in which all nodes have the same files: which rows are "
      "this node's. none: all; iid: an equal random part; quantity: random "
      "parts of sizes Dir(theta); dirichlet: each class split by Dir(theta); "
      "classes: rows of a few classes only; explicit: sizes and ratios."));
  table.push_back(Integer(
      "data.partition.count",
      [](NodeSettings& s) -> int64_t& { return s.data.partition.count; }, 1,
      100000, "parts",
      "Parts the rows are split into, the same on all nodes."));
  table.push_back(Integer(
      "data.partition.index",
      [](NodeSettings& s) -> int64_t& { return s.data.partition.index; }, 0,
      99999, "", "This node's part, from 0; below data.partition.count."));
  table.push_back(Seed(
      "data.partition.seed",
      [](NodeSettings& s) -> uint64_t& { return s.data.partition.seed; },
      "Seed of the split, the same on all nodes."));
  table.push_back(Positive(
      "data.partition.theta",
      [](NodeSettings& s) -> double& { return s.data.partition.theta; },
      "dirichlet, quantity: concentration; the smaller, the more the parts "
      "differ."));
  table.push_back(Integer(
      "data.partition.classes_per_node",
      [](NodeSettings& s) -> int64_t& {
        return s.data.partition.classes_per_node;
      },
      1, 65536, "classes", "classes: how many classes a part holds."));
  table.push_back(NumberList(
      "data.partition.sizes",
      [](NodeSettings& s) -> std::vector<double>& {
        return s.data.partition.sizes;
      },
      "numbers of at least 0, as many as data.partition.count, their sum at "
      "most 1",
      true,
      "explicit: which share of all rows each part has, the same list on all "
      "nodes, such as [0.1, 0.1, 0.2, 0.4]."));
  table.push_back(RatioList(
      "data.partition.ratios",
      [](NodeSettings& s) -> std::vector<std::vector<double>>& {
        return s.data.partition.ratios;
      },
      "as many as data.partition.count, each a number of at least 0 for every "
      "class, or [] for the mixture of all rows",
      "explicit: how the classes are mixed in each part, the same list on all "
      "nodes, such as [\"1:99\", \"99:1\", \"3:7\", \"6:4\"]."));
  return table;
}

std::vector<Setting> RestTable() {
  std::vector<Setting> table;
  table.push_back(Text(
      "compute.device",
      [](NodeSettings& s) -> std::string& { return s.compute.device; },
      "cpu, cuda or cuda:N", Device,
      "Where gradients are computed. cuda needs a LibTorch that has it."));
  table.push_back(Integer(
      "compute.threads",
      [](NodeSettings& s) -> int64_t& { return s.compute.threads; }, 0, 1024,
      "threads",
      "Threads of one gradient; 0: as many as the cgroup's CPU quota allows."));
  table.push_back(Size(
      "compute.memory_limit",
      [](NodeSettings& s) -> uint64_t& { return s.compute.memory_limit; }, 0,
      "A run plan that may need more memory than this is refused: program, "
      "data, model, and what the algorithm keeps for each neighbour while "
      "links "
      "are at their worst. What one mini-batch takes is not counted: leave "
      "room "
      "for it."));
  table.back().default_note =
      "0: the cgroup's memory limit or the machine's memory, whichever is "
      "less, "
      "or none where neither can be read";
  table.push_back(Size(
      "limits.max_model_bytes",
      [](NodeSettings& s) -> uint64_t& { return s.limits.max_model_bytes; },
      1024, "A model that takes more (as fp32) is refused, from peers too."));
  table.push_back(Integer(
      "limits.max_transfers_per_peer",
      [](NodeSettings& s) -> int64_t& {
        return s.limits.max_transfers_per_peer;
      },
      1, 1024, "models",
      "Models that may be on their way from one neighbour at once, and as many "
      "to it; more are refused as busy."));
  table.push_back(Choice<LogLevel>(
      "log.level", [](NodeSettings& s) -> LogLevel& { return s.log.level; },
      {{"debug", LogLevel::kDebug},
       {"info", LogLevel::kInfo},
       {"warning", LogLevel::kWarning},
       {"error", LogLevel::kError}},
      "The least grave messages that are still written."));
  table.push_back(Choice<LogFormat>(
      "log.format", [](NodeSettings& s) -> LogFormat& { return s.log.format; },
      {{"text", LogFormat::kText}, {"json", LogFormat::kJson}},
      "How a line of the log is written; the log goes to stderr."));
  table.push_back(Text(
      "run.plan", [](NodeSettings& s) -> std::string& { return s.run.plan; },
      "a path, or \"\" for none", AnyText,
      "A run plan (YAML) to adopt when the state folder holds none. Without, "
      "the node waits for dflctl plan apply."));
  table.push_back(Flag(
      "run.autostart", [](NodeSettings& s) -> bool& { return s.run.autostart; },
      "Train as soon as there is a plan, without dflctl train start."));
  return table;
}

const std::vector<Setting>& Table() {
  static const std::vector<Setting>& table = *[] {
    auto* all = new std::vector<Setting>();
    for (auto part : {NodeTable, PlaneTable, DataTable, StandardiseTable,
                      PartitionTable, RestTable}) {
      for (Setting& setting : part()) all->push_back(std::move(setting));
    }
    return all;
  }();
  return table;
}

}  // namespace

absl::Span<const Setting> SettingsTable() { return Table(); }

absl::Span<const SettingSection> SettingSections() {
  static const std::vector<SettingSection>& sections =
      *new std::vector<SettingSection>{
          {"tls", "This node's certificate, with security: tls."},
          {"join", "How this node gets its certificate, once."},
          {"enrol", "How new nodes get theirs from this one."},
          {"peer", "The plane between daemons."},
          {"control", "The plane between dflctl and this daemon."},
          {"data",
           "What this node trains and is evaluated on. It never leaves."},
          {"data.train", "Training files."},
          {"data.test", "Test files."},
          {"data.standardise",
           "How features are shifted and scaled; bytes are first divided by "
           "255. One of per, mean with std, and file, or none of them."},
          {"data.partition", "A share of common files, for experiments."},
          {"compute", "Processor, threads and memory of the training."},
          {"limits", "Bounds on what others may make this node do."},
          {"log", "What is written to stderr."},
          {"run", "What the daemon does by itself after it started."},
      };
  return sections;
}

const Setting* FindSetting(absl::string_view key) {
  for (const Setting& setting : Table()) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::string EnvironmentName(absl::string_view key) {
  return absl::StrCat(
      "DFLD_", absl::AsciiStrToUpper(absl::StrReplaceAll(key, {{".", "_"}})));
}

}  // namespace dfl::config
