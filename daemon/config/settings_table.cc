#include "daemon/config/settings_table.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/host_port.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/data_table.h"
#include "daemon/config/setting_makers.h"
#include "daemon/config/values.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/ports/member_frames.h"
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

absl::Status ServiceName(absl::string_view text) {
  constexpr size_t kLongestName = 253;
  if (!absl::StartsWith(text, "_") || !absl::StrContains(text, "._tcp.")) {
    return NotAllowed("a service is written _NAME._tcp.DOMAIN");
  }
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) &&
        !absl::StrContains("-_.", c)) {
      return NotAllowed("a service has letters, digits, '-', '_' and '.'");
    }
  }
  return text.size() <= kLongestName ? absl::OkStatus()
                                     : NotAllowed("it is too long");
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
          "The network that this node belongs to. With security: tls its "
          "certificate must be of that network. With insecure it is told in "
          "plain text, and keeps networks apart that meet by mistake: all "
          "nodes of one have the same, or none."),
      "with tls the one that the certificate names"));
  table.push_back(Labels(
      "labels",
      [](NodeSettings& s) -> std::map<std::string, std::string>& {
        return s.labels;
      },
      "What plans and orders may select nodes by, such as site=north."));
  table.push_back(Choice<core::Participation>(
      "participation",
      [](NodeSettings& s) -> core::Participation& { return s.participation; },
      {{"train", core::Participation::kTrain},
       {"mix", core::Participation::kMix},
       {"observe", core::Participation::kObserve}},
      "train: this node learns from its data. mix: it takes no gradient, and "
      "mixes the models of its neighbours; its data only say what the model's "
      "input is. observe: it does neither; it watches, and answers for the "
      "network."));
  table.push_back(TextList(
      "peers",
      [](NodeSettings& s) -> std::vector<std::string>& { return s.peers; },
      "host:port, IPv6 as [address]:port", PeerAddress,
      "Daemons to connect to. A name is resolved again and again, and each of "
      "its addresses is tried. One node that can be reached is enough to find "
      "all others; more can be added with dflctl peer add, and are kept in "
      "state_dir. The list may be the same on all nodes."));
  return table;
}

std::vector<Setting> DiscoveryTable() {
  std::vector<Setting> table;
  table.push_back(TextList(
      "discovery.dns",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.discovery.dns;
      },
      "host:port", PeerAddress,
      "Names behind which there are many daemons, such as a headless Service "
      "of Kubernetes: all addresses of each are tried."));
  table.push_back(TextList(
      "discovery.srv",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.discovery.srv;
      },
      "names of DNS services, such as _dfl._tcp.example.org", ServiceName,
      "Services whose SRV records say hosts and ports of daemons."));
  table.push_back(Text(
      "discovery.file",
      [](NodeSettings& s) -> std::string& { return s.discovery.file; },
      "a path, or \"\" for none", AnyText,
      "A file with a host:port a line that somebody keeps up to date; what "
      "follows # is a comment. Changes are taken up within two seconds. While "
      "it is missing or a line is wrong, the last good list holds."));
  table.push_back(WithNote(
      AutoFlag(
          "discovery.mdns",
          [](NodeSettings& s) -> std::optional<bool>& {
            return s.discovery.mdns;
          },
          "Announce this node on the local network by multicast DNS "
          "(_dfl._tcp), and try those of the same cluster that announce "
          "themselves. Needs cluster."),
      "on where cluster is set and peer.listen is not on loopback only"));
  table.push_back(Choice<ports::Pace>(
      "membership.pace",
      [](NodeSettings& s) -> ports::Pace& { return s.membership.pace; },
      {{"lan", ports::Pace::kLan},
       {"wan", ports::Pace::kWan},
       {"cellular", ports::Pace::kCellular}},
      "How long a silent node is waited for before the others think it dead: "
      "seconds in a lan, a minute over a wan, more over a cellular network."));
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
      "/etc/dfld/tls for root and under systemd, or tls in state_dir for what "
      "a service of systemd got for join.token; else "
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
          "behind NAT, or in a container."),
      "the addresses of peer.listen; those of the machine's interfaces where "
      "it is 0.0.0.0 or [::]"));
  table.push_back(WithNote(
      AutoFlag(
          "peer.dialable",
          [](NodeSettings& s) -> std::optional<bool>& {
            return s.peer.dialable;
          },
          "Whether others can connect to this node. off: it only dials out, "
          "as behind NAT, and tells no address."),
      "on unless peer.listen is empty"));
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

absl::Status WebGroup(absl::string_view text) {
  if (text == "health" || text == "metrics" || text == "page") {
    return absl::OkStatus();
  }
  return NotAllowed();
}

std::vector<Setting> WebTable() {
  std::vector<Setting> table;
  table.push_back(TextList(
      "web.listen",
      [](NodeSettings& s) -> std::vector<std::string>& { return s.web.listen; },
      "host:port, IPv6 as [address]:port; port 0: the system chooses; [] "
      "serves none",
      HostAndPort,
      "Where probes (/livez, /readyz), metrics (/metrics) and the status page "
      "are served over HTTP, such as 127.0.0.1:7680. It is plain text and "
      "nobody is asked who they are: every user of this machine can read it, "
      "and with an address of the network whoever reaches that."));
  table.push_back(TextList(
      "web.open",
      [](NodeSettings& s) -> std::vector<std::string>& { return s.web.open; },
      "health, metrics, page", WebGroup,
      "What of it is served to whoever does not come by this machine's "
      "loopback address. The page shows plan, members and events."));
  return table;
}

std::vector<Setting> PublishTable() {
  using When = PublishSettings::When;
  using Format = PublishSettings::Format;
  std::vector<Setting> table;
  table.push_back(Text(
      "model.publish.path",
      [](NodeSettings& s) -> std::string& { return s.publish.path; },
      "a path, or \"\" for none", AnyText,
      "Where the model is written while the node trains. A reader finds a "
      "whole "
      "model at any time."));
  table.push_back(Choice<When>(
      "model.publish.when",
      [](NodeSettings& s) -> When& { return s.publish.when; },
      {{"steps", When::kSteps}, {"best", When::kBest}},
      "steps: every so many steps, and at the run's end. best: whenever it "
      "evaluates better than ever in this run, which takes data.test."));
  table.push_back(Integer(
      "model.publish.every_steps",
      [](NodeSettings& s) -> int64_t& { return s.publish.every_steps; }, 1,
      std::numeric_limits<int64_t>::max(), "steps", "With when: steps."));
  table.push_back(Choice<Format>(
      "model.publish.format",
      [](NodeSettings& s) -> Format& { return s.publish.format; },
      {{"auto", Format::kByName},
       {"safetensors", Format::kSafetensors},
       {"torchscript", Format::kTorchScript}},
      "auto: torchscript for a path that ends in .pt, else safetensors. "
      "torchscript is for models of kind torchscript; what its numbers mean is "
      "in PATH.json, with safetensors in the file."));
  return table;
}

absl::Status HoursText(absl::string_view text) {
  return ReadHours(text).has_value()
             ? absl::OkStatus()
             : NotAllowed("two times of a day that differ");
}

std::vector<Setting> TrainTable() {
  std::vector<Setting> table;
  table.push_back(TextList(
      "train.window",
      [](NodeSettings& s) -> std::vector<std::string>& {
        return s.train.window;
      },
      "HH:MM-HH:MM by this machine's time zone, such as [22:00-06:00]",
      HoursText,
      "When this node trains; empty: at any time. Outside of these hours it "
      "pauses, answers others, and goes on by itself."));
  table.push_back(Integer(
      "train.pause_above",
      [](NodeSettings& s) -> int64_t& { return s.train.pause_above; }, 0, 150,
      "degrees Celsius",
      "Pause while the hottest sensor of /sys/class/thermal is above this, "
      "until it is 5 degrees below; 0: never."));
  table.push_back(Flag(
      "train.pause_on_battery",
      [](NodeSettings& s) -> bool& { return s.train.pause_on_battery; },
      "Pause while this machine runs on its battery "
      "(/sys/class/power_supply)."));
  table.push_back(Integer(
      "train.cpu_share",
      [](NodeSettings& s) -> int64_t& { return s.train.cpu_share; }, 1, 100,
      "percent",
      "Part of the time that gradients are computed: after each one the "
      "training rests for as long as this takes. 100: it never does."));
  table.push_back(Integer(
      "train.nice", [](NodeSettings& s) -> int64_t& { return s.train.nice; }, 0,
      19, "",
      "How much more the training yields to other programs than the daemon "
      "does (nice)."));
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
      "Threads of one gradient, where LibTorch computes it; 0: as many as "
      "there are processors that nobody else uses, within the cgroup's quota, "
      "looked at again every minute."));
  table.push_back(Interval(
      "compute.frozen_after",
      [](NodeSettings& s) -> absl::Duration& { return s.compute.frozen_after; },
      "A mini-batch that takes longer than this, and longer than 20 times the "
      "usual, counts as frozen: the log says so, and systemd's watchdog starts "
      "dfld again. 0s: none does."));
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
    for (auto part : {NodeTable, DiscoveryTable, PlaneTable, WebTable,
                      DataTable, StandardiseTable, PartitionTable, PublishTable,
                      TrainTable, RestTable}) {
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
          {"discovery",
           "Where other daemons are looked for, beside peers. Whoever is found "
           "is a member only after a handshake."},
          {"membership", "How members watch over one another."},
          {"tls", "This node's certificate, with security: tls."},
          {"join", "How this node gets its certificate, once."},
          {"enrol", "How new nodes get theirs from this one."},
          {"peer", "The plane between daemons."},
          {"control", "The plane between dflctl and this daemon."},
          {"web", "Probes, metrics and the status page, over HTTP."},
          {"data",
           "What this node trains and is evaluated on. It never leaves."},
          {"data.train", "Training files."},
          {"data.test", "Test files."},
          {"data.standardise",
           "How features are shifted and scaled after data.divide. One of "
           "per, mean with std, and file, or none of them."},
          {"data.partition", "A share of common files, for experiments."},
          {"model", "The model on this box; what it is, the run plan says."},
          {"model.publish", "The model as a file, for programs on this box."},
          {"train", "When this box trains, and how much of it."},
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
