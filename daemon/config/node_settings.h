// A node's own settings: who it is, where it listens, its data, its device and
// its limits. Everything that is the same on all nodes (model, algorithm,
// topology, ...) is in the run plan: core/plan/run_plan.h and plan_yaml.h.
//
// Every setting has a key in the configuration file, an environment variable
// and a flag, all derived from one table (settings_table.h):
//
//   key control.socket, variable DFLD_CONTROL_SOCKET, flag --control.socket=...
//
// Order of precedence: flag > environment > conf.d/*.yaml (the last name wins)
// > file > default. A list given by a stronger source replaces the weaker one.
#ifndef DFL_CONFIG_NODE_SETTINGS_H_
#define DFL_CONFIG_NODE_SETTINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/data/data_spec.h"
#include "daemon/data/partition.h"
#include "daemon/ports/member_frames.h"
#include "daemon/tls/credentials.h"

namespace dfl::config {

enum class Security {
  kTls,       // mutual TLS on every network connection
  kInsecure,  // plain text, no identity; only if set explicitly
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// The plane between daemons.
struct PeerSettings {
  // host:port to listen on; port 0: the system chooses. Empty: dial out only.
  std::vector<std::string> listen = {"0.0.0.0:7600"};
  // host:port by which others reach this node; port 0: the port it listens on.
  // "": derived from `listen` and the machine's interfaces.
  std::string advertise;
  // Whether others can dial this node; nullopt: if it listens.
  std::optional<bool> dialable;
};

// Where daemons are looked for, beside `peers`. What is found is dialled; it
// becomes a member by a handshake.
struct DiscoverySettings {
  std::vector<std::string> dns;  // host:port, all addresses of the name
  std::vector<std::string> srv;  // "_dfl._tcp.example.org"
  std::string file;              // path, a host:port a line; "": none
  // Announce and browse on the local network. nullopt: where `cluster` is set
  // and a listener is not on loopback.
  std::optional<bool> mdns;

  bool AnySource() const {
    return !dns.empty() || !srv.empty() || !file.empty();
  }
};

struct MembershipSettings {
  ports::Pace pace = ports::Pace::kLan;
};

// The plane between dflctl and the daemon.
struct ControlSettings {
  // Path of the unix socket.
  std::string socket = "/run/dfld/control.sock";
  // host:port to serve control on as well. Empty: unix socket only.
  std::vector<std::string> listen;
  // Who may steer this node, or read of it, on the unix socket: users by name
  // or number, groups as "@name". No admins: root, the daemon's user, and its
  // group.
  std::vector<std::string> admins;
  std::vector<std::string> viewers;
};

// Who this node is, to others, with `security: tls`.
struct TlsSettings {
  std::string folder = "/etc/dfld/tls";  // of the three files below
  std::string bundle;                    // "": ca.pem in the folder
  std::string certificate;               // "": cert.pem in the folder
  std::string key;                       // "": key.pem in the folder

  tls::CredentialPaths Paths() const;
};

// How a node without a certificate gets one.
struct JoinSettings {
  std::string token;  // as dflctl token create printed it; a secret
  std::string at;     // host:port of the issuer that made it
};

// What a node that issues certificates to new nodes works with.
struct EnrolSettings {
  std::string folder;  // of the network's authority; "": it issues none
  std::string listen;  // host:port
};

// How features are shifted and scaled, after the division of data.divide. The
// numbers come from here, from a file, or from training rows; at most one of
// the three is set. Without any nothing is scaled.
struct StandardiseSettings {
  enum class Per { kNone, kAll, kChannel, kFeature };
  enum class Over { kNode, kNetwork };

  Per per = Per::kNone;  // of the rows of `over`
  Over over = Over::kNode;
  // One number for all, for each channel, or for each feature. Both have the
  // same length.
  std::vector<float> mean;
  std::vector<float> std;
  std::string file;  // CSV with the columns mean and std, a line a feature
};

struct DataSettings {
  // Format, labels and shape of both sets; `paths` and `rows` are not used.
  data::DataSpec common;
  std::vector<std::string> train_paths;
  int64_t train_rows = 0;  // that the training files must hold; 0: any
  std::vector<std::string> test_paths;  // empty: nothing to evaluate on
  int64_t test_rows = 0;
  // npz: "" as common's.
  std::string test_features_key;
  std::string test_labels_key;
  StandardiseSettings standardise;
  // Which of the training rows are this node's.
  data::PartitionSpec partition;
  // Between two looks whether the files have changed; 0: nobody looks.
  absl::Duration watch = absl::Seconds(30);

  data::DataSpec TrainSpec() const;
  data::DataSpec TestSpec() const;
};

struct ComputeSettings {
  std::string device = "cpu";  // cpu, cuda or cuda:N
  // Training threads; 0: as many as the cgroup's quota allows.
  int64_t threads = 0;
  // A mini-batch that takes longer, and 20 times what one takes usually, is
  // frozen; 0: none is.
  absl::Duration frozen_after = absl::Minutes(5);
  // Bytes that a plan may need; 0: as many as cgroup and machine have.
  uint64_t memory_limit = 0;
};

// The model as a file for programs on this box.
struct PublishSettings {
  enum class When { kSteps, kBest };
  enum class Format { kByName, kSafetensors, kTorchScript };

  std::string path;  // "": it is not published
  When when = When::kSteps;
  int64_t every_steps = 1000;       // with kSteps; the last step as well
  Format format = Format::kByName;  // .pt is TorchScript
};

struct LimitSettings {
  uint64_t max_model_bytes = uint64_t{4} << 30;  // one model, fp32
  int64_t max_transfers_per_peer = 4;            // models at once, each way
};

struct LogSettings {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
};

// Probes, metrics and the status page over HTTP.
struct WebSettings {
  // host:port; port 0: the system chooses. Empty: nothing is served.
  std::vector<std::string> listen;
  // What whoever comes from elsewhere may read: health, metrics, page.
  std::vector<std::string> open = {"health", "metrics"};
};

struct RunSettings {
  // A plan to adopt when the state directory holds none. "": wait for dflctl.
  std::string plan;
  // Train as soon as there is a plan, without `dflctl train start`.
  bool autostart = false;
};

struct NodeSettings {
  // Whether it has a listener on the network or peers to dial.
  bool OnNetwork() const {
    return !peer.listen.empty() || !control.listen.empty() || !peers.empty() ||
           discovery.AnySource() || UsesMdns();
  }
  // Whether nodes are announced and looked for by mDNS.
  bool UsesMdns() const;

  std::string name;  // NodeId; default: the host's name
  std::string state_dir = "/var/lib/dfld";
  Security security = Security::kTls;
  // The network that this node belongs to; its certificate must be of it. "":
  // with tls that which the certificate says.
  std::string cluster;
  // What selectors of plans and orders may name: site=north.
  std::map<std::string, std::string> labels;
  core::Participation participation = core::Participation::kTrain;
  TlsSettings tls;
  JoinSettings join;
  EnrolSettings enrol;
  // host:port of daemons to connect to.
  std::vector<std::string> peers;
  DiscoverySettings discovery;
  MembershipSettings membership;
  PeerSettings peer;
  ControlSettings control;
  WebSettings web;
  DataSettings data;
  ComputeSettings compute;
  PublishSettings publish;
  LimitSettings limits;
  LogSettings log;
  RunSettings run;
};

// "warning", as in the file.
std::string ToString(LogLevel level);

// ---------------------------------------------------------------- sources --

// One YAML text with the name that errors call it.
struct SettingsText {
  std::string name;
  std::string text;
};

// All sources of settings, so that loading itself reads nothing.
struct SettingsSources {
  // Weakest first: the file, then conf.d in order of names.
  std::vector<SettingsText> files;
  // The whole environment; only DFLD_*, XDG_* and systemd's are looked at.
  std::map<std::string, std::string> environment;
  // (key, text) of --key=text, in order.
  std::vector<std::pair<std::string, std::string>> flags;
  std::string host_name;
  // Those of the default folders of certificates that hold a cert.pem.
  std::set<std::string> folders_with_certificate;
  // Whether defaults are those of a service or of a person's own session.
  bool is_root = true;
};

// One line of `config show --effective --origin`.
struct EffectiveSetting {
  std::string key;
  // As it would stand in the file; "(hidden)" for a secret that was set.
  std::string value;
  // "/etc/dfld/dfld.yaml:12", "environment DFLD_NAME", "flag --name" or
  // "default".
  std::string origin;
};

struct LoadedSettings {
  NodeSettings settings;
  std::vector<EffectiveSetting> effective;  // every key, in the table's order
};

// Parses and merges `sources`.
// Errors: INVALID_ARGUMENT with one line for each of the first ten mistakes,
//   ORIGIN: KEY: found VALUE; allowed: ...
// An unknown key or DFLD_ variable is a mistake and named with the nearest
// known one.
absl::StatusOr<LoadedSettings> LoadNodeSettings(const SettingsSources& sources);

// The place of a data section in a larger document.
struct DataSurroundings {
  std::string path;               // of the section, for errors
  std::vector<std::string> keys;  // in the section, beside its own; not read
  int64_t parts = 1;              // that the rows are split into
};

// The section `data` of node settings as a part of another document, such as a
// simulated network: the same keys, without partition.count and
// partition.index. `file` is only quoted.
// Errors: as LoadNodeSettings, FILE:LINE: PATH.KEY: found VALUE; allowed: ...
absl::StatusOr<DataSettings> ReadDataSettings(const YamlNode& section,
                                              const std::string& file,
                                              const DataSurroundings& around);

// Checks what a daemon needs to start beyond well-formed settings: data to
// train on, unless its participation needs none.
// Errors: INVALID_ARGUMENT, as LoadNodeSettings.
absl::Status CheckStartable(const LoadedSettings& loaded);

}  // namespace dfl::config

#endif  // DFL_CONFIG_NODE_SETTINGS_H_
