#include "daemon/config/node_settings.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/default_places.h"
#include "daemon/config/settings_checks.h"
#include "daemon/config/settings_table.h"
#include "daemon/config/values.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::config {
namespace {

constexpr char kData[] = "data";
constexpr char kHidden[] = "(hidden)";

// Variables that are ours though no setting: DaemonCommandLine's.
bool IsOtherVariable(absl::string_view name) {
  return name == "DFLD_CONFIG" || name == "DFLD_CONF_D" ||
         name == "DFLD_READY_FILE";
}

// Kubernetes sets DFLD_SERVICE_HOST, DFLD_PORT_7600_TCP and the like in every
// container beside a Service called "dfld" or "dfld-peer"; no setting has such
// a name.
bool IsKubernetesVariable(absl::string_view name) {
  if (absl::StrContains(name, "_SERVICE_HOST") ||
      absl::StrContains(name, "_SERVICE_PORT") ||
      absl::EndsWith(name, "_PORT")) {
    return true;
  }
  const size_t port = name.find("_PORT_");
  return port != absl::string_view::npos && port + 6 < name.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(name[port + 6]));
}

// Merges the sources, weakest first.
class Loader {
 public:
  explicit Loader(const SettingsSources& sources) : sources_(sources) {
    loaded_.settings.name = sources.host_name;
    loaded_.settings.state_dir =
        DefaultStateFolder(sources.environment, sources.is_root);
    loaded_.settings.control.socket =
        DefaultControlSocket(sources.environment, sources.is_root);
    loaded_.settings.tls.folder =
        DefaultTlsFolder(sources.environment, sources.is_root);
    for (const Setting& setting : SettingsTable()) {
      origins_[setting.key] = "default";
      names_.push_back(setting.key);
    }
    for (const SettingSection& section : SettingSections()) {
      names_.push_back(section.prefix);
    }
  }

  // The data section of a larger document, see ReadDataSettings.
  absl::StatusOr<DataSettings> LoadData(const YamlNode& section,
                                        const std::string& file,
                                        const DataSurroundings& around) {
    around_ = &around;
    loaded_.settings.data.partition.count = around.parts;
    names_.erase(std::remove_if(names_.begin(), names_.end(),
                                [](const std::string& name) {
                                  return !absl::StartsWith(name, "data.");
                                }),
                 names_.end());
    for (const std::string& key : around.keys) {
      names_.push_back(absl::StrCat(kData, ".", key));
    }
    TakeSection(file, kData, section);
    SettingsChecks(
        loaded_.settings, origins_, broken_,
        [this](absl::string_view key) { return Shown(key); }, mistakes_)
        .Run();
    DFL_RETURN_IF_ERROR(mistakes_.ToStatus());
    return std::move(loaded_.settings.data);
  }

  absl::StatusOr<LoadedSettings> Load() {
    for (const SettingsText& file : sources_.files) TakeFile(file);
    TakeEnvironment();
    TakeFlags();
    PlaceTlsFolder();
    SettingsChecks(
        loaded_.settings, origins_, broken_,
        [this](absl::string_view key) { return Shown(key); }, mistakes_)
        .Run();
    DFL_RETURN_IF_ERROR(mistakes_.ToStatus());
    for (const Setting& setting : SettingsTable()) {
      std::string value = setting.get(loaded_.settings);
      if (setting.is_secret && value != setting.get(NodeSettings())) {
        value = kHidden;
      }
      loaded_.effective.push_back(
          {setting.key, std::move(value), origins_[setting.key]});
    }
    return std::move(loaded_);
  }

 private:
  void TakeFile(const SettingsText& file) {
    const absl::StatusOr<YamlNode> root = ParseYaml(file.text, file.name);
    if (!root.ok()) {
      mistakes_.Add(std::string(root.status().message()));
      return;
    }
    if (root->kind == YamlNode::Kind::kNull) return;  // all commented out
    if (root->kind != YamlNode::Kind::kMap) {
      mistakes_.Add(absl::StrCat(file.name, ":", root->line, ": found ",
                                 Describe(*root),
                                 "; allowed: settings as \"key: value\""));
      return;
    }
    TakeSection(file.name, "", *root);
  }

  void TakeSection(const std::string& file, const std::string& prefix,
                   const YamlNode& section) {
    for (const YamlNode& item : section.items) {
      const std::string key =
          prefix.empty() ? item.key : absl::StrCat(prefix, ".", item.key);
      const std::string origin = absl::StrCat(file, ":", item.key_line);
      if (around_ != nullptr && IsOthers(key, origin)) continue;
      if (IsSection(key)) {
        if (item.kind == YamlNode::Kind::kMap) {
          TakeSection(file, key, item);
        } else if (item.kind != YamlNode::Kind::kNull) {
          mistakes_.Add(absl::StrCat(origin, ": ", Shown(key), ": found ",
                                     Describe(item), "; allowed: a section of ",
                                     KeysOf(key)));
        }
        continue;
      }
      const Setting* setting = FindSetting(key);
      if (setting == nullptr) {
        UnknownName(origin, key, "setting");
        continue;
      }
      RawValue value;
      if (!ToRaw(item, setting->is_map, value)) {
        mistakes_.Add(absl::StrCat(origin, ": ", Shown(key), ": found ",
                                   item.kind == YamlNode::Kind::kList
                                       ? "a list of more than values"
                                       : Describe(item),
                                   "; allowed: ", setting->allowed,
                                   item.kind == YamlNode::Kind::kNull
                                       ? "; remove the line to have the default"
                                       : ""));
        continue;
      }
      Take(*setting, value, origin);
    }
  }

  // Whether `key` of a data section belongs to the document around it.
  bool IsOthers(const std::string& key, const std::string& origin) {
    if (key == "data.partition.count" || key == "data.partition.index") {
      mistakes_.Add(absl::StrCat(origin, ": ", Shown(key),
                                 ": follows from the nodes; remove it"));
      return true;
    }
    if (key == "data.watch") {
      mistakes_.Add(absl::StrCat(origin, ": ", Shown(key),
                                 ": the files are read once; remove it"));
      return true;
    }
    const std::vector<std::string>& keys = around_->keys;
    return std::any_of(keys.begin(), keys.end(), [&](const std::string& own) {
      return key == absl::StrCat(kData, ".", own);
    });
  }

  // A key as the document has it: "network.problem.train.paths".
  std::string Shown(absl::string_view key) const {
    if (around_ == nullptr || !absl::ConsumePrefix(&key, kData)) {
      return std::string(key);
    }
    return absl::StrCat(around_->path, key);
  }

  void TakeEnvironment() {
    std::map<std::string, const Setting*> by_variable;
    std::vector<std::string> variables;
    for (const Setting& setting : SettingsTable()) {
      variables.push_back(EnvironmentName(setting.key));
      by_variable[variables.back()] = &setting;
    }
    for (const auto& [name, text] : sources_.environment) {
      if (!absl::StartsWith(name, "DFLD_") || IsOtherVariable(name)) continue;
      const std::string origin = absl::StrCat("environment ", name);
      const auto found = by_variable.find(name);
      if (found == by_variable.end()) {
        if (IsKubernetesVariable(name)) continue;
        const std::string nearest = NearestName(name, variables);
        mistakes_.Add(absl::StrCat(
            origin, ": no setting has this variable; ",
            nearest.empty() ? "dfld --help lists them all"
                            : absl::StrCat("did you mean ", nearest, "?")));
        continue;
      }
      RawValue value;
      value.text = text;
      Take(*found->second, value, origin);
    }
  }

  void TakeFlags() {
    std::set<std::string> seen;
    for (const auto& [key, text] : sources_.flags) {
      const std::string origin = absl::StrCat("flag --", key);
      const Setting* setting = FindSetting(key);
      if (setting == nullptr) {
        UnknownName(origin, key, "setting");
        continue;
      }
      RawValue value;
      value.text = text;
      if (setting->is_list) {
        // A repeated flag adds to the list.
        if (!seen.insert(key).second) continue;
        std::string all;
        for (const auto& [other, more] : sources_.flags) {
          if (other != key || more.empty()) continue;
          absl::StrAppend(&all, all.empty() ? "" : ",", more);
        }
        value.text = all;
      }
      Take(*setting, value, origin);
    }
  }

  // A service may not write below /etc: what it gets for a join token is in its
  // state folder, also when the token is no longer set.
  void PlaceTlsFolder() {
    NodeSettings& settings = loaded_.settings;
    const std::string writable = WritableTlsFolder(sources_.environment);
    if (origins_["tls.folder"] != "default" || writable.empty()) return;
    const std::set<std::string>& with = sources_.folders_with_certificate;
    if (with.count(settings.tls.folder) > 0) return;
    if (with.count(writable) > 0 || !settings.join.token.empty()) {
      settings.tls.folder = writable;
    }
  }

  void Take(const Setting& setting, const RawValue& value,
            const std::string& origin) {
    const absl::Status status = setting.set(value, loaded_.settings);
    if (status.ok()) {
      origins_[setting.key] = origin;
      return;
    }
    mistakes_.Add(absl::StrCat(
        origin, ": ", Shown(setting.key), ": found ",
        setting.is_secret ? kHidden
        : value.is_list   ? WriteList(value.items)
                          : Quoted(value.text),
        status.message().empty() ? "" : absl::StrCat(": ", status.message()),
        "; allowed: ", setting.allowed));
    broken_.insert(setting.key);
  }

  static bool IsSection(absl::string_view key) {
    const absl::Span<const SettingSection> sections = SettingSections();
    return std::any_of(
        sections.begin(), sections.end(),
        [key](const SettingSection& s) { return s.prefix == key; });
  }

  // "socket, listen": what may stand in a section.
  static std::string KeysOf(absl::string_view section) {
    std::vector<std::string> keys;
    const std::string prefix = absl::StrCat(section, ".");
    for (const Setting& setting : SettingsTable()) {
      absl::string_view rest = setting.key;
      if (!absl::ConsumePrefix(&rest, prefix)) continue;
      const std::string key(rest.substr(0, rest.find('.')));
      if (keys.empty() || keys.back() != key) keys.push_back(key);
    }
    return Either(keys);
  }

  void UnknownName(const std::string& origin, const std::string& key,
                   absl::string_view what) {
    const std::string nearest = NearestName(key, names_);
    const std::string section(key.substr(0, key.find_last_of('.')));
    std::string advice;
    if (!nearest.empty()) {
      advice = absl::StrCat("did you mean ", Shown(nearest), "?");
    } else if (section != key && IsSection(section)) {
      advice =
          absl::StrCat("allowed in ", Shown(section), ": ", KeysOf(section),
                       around_ == nullptr || section != kData
                           ? ""
                           : absl::StrCat(", ", Either(around_->keys)));
    } else {
      advice = "dfld --help lists them all";
    }
    mistakes_.Add(absl::StrCat(origin, ": ", Shown(key), ": unknown ", what,
                               "; ", advice));
  }

  static bool ToRaw(const YamlNode& node, bool may_be_map, RawValue& value) {
    if (node.kind == YamlNode::Kind::kScalar) {
      value.text = node.text;
      return true;
    }
    const bool is_map = node.kind == YamlNode::Kind::kMap;
    if (is_map && !may_be_map) return false;
    if (!is_map && node.kind != YamlNode::Kind::kList) return false;
    value.is_list = true;
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::kScalar) return false;
      value.items.push_back(is_map ? absl::StrCat(item.key, "=", item.text)
                                   : item.text);
    }
    return true;
  }

  const SettingsSources& sources_;
  const DataSurroundings* around_ = nullptr;  // LoadData's
  LoadedSettings loaded_;
  std::map<std::string, std::string> origins_;  // by key
  std::vector<std::string> names_;              // of settings and sections
  std::set<std::string> broken_;                // keys whose value was refused
  Mistakes mistakes_;
};

std::string OriginOf(const LoadedSettings& loaded, absl::string_view key) {
  for (const EffectiveSetting& entry : loaded.effective) {
    if (entry.key == key) return entry.origin;
  }
  return "default";
}

}  // namespace

tls::CredentialPaths TlsSettings::Paths() const {
  const auto path = [this](const std::string& given, const char* name) {
    return given.empty() ? absl::StrCat(folder, "/", name) : given;
  };
  return {path(bundle, "ca.pem"), path(certificate, "cert.pem"),
          path(key, "key.pem")};
}

bool NodeSettings::UsesMdns() const {
  if (discovery.mdns.has_value()) return *discovery.mdns;
  const auto is_public = [](const std::string& listener) {
    const auto address = ParseHostPort(listener);
    return address.ok() && !IsLoopback(address->host);
  };
  return !cluster.empty() &&
         std::any_of(peer.listen.begin(), peer.listen.end(), is_public);
}

data::DataSpec DataSettings::TrainSpec() const {
  data::DataSpec spec = common;
  spec.paths = train_paths;
  spec.rows = train_rows;
  return spec;
}

data::DataSpec DataSettings::TestSpec() const {
  data::DataSpec spec = common;
  spec.paths = test_paths;
  spec.rows = test_rows;
  if (!test_features_key.empty()) spec.features_key = test_features_key;
  if (!test_labels_key.empty()) spec.labels_key = test_labels_key;
  return spec;
}

std::string ToString(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

absl::StatusOr<LoadedSettings> LoadNodeSettings(
    const SettingsSources& sources) {
  return Loader(sources).Load();
}

absl::StatusOr<DataSettings> ReadDataSettings(const YamlNode& section,
                                              const std::string& file,
                                              const DataSurroundings& around) {
  SettingsSources nobody;
  nobody.host_name = "nobody";
  return Loader(nobody).LoadData(section, file, around);
}

absl::Status CheckStartable(const LoadedSettings& loaded) {
  const NodeSettings& settings = loaded.settings;
  Mistakes mistakes;
  if (settings.data.train_paths.empty() &&
      settings.participation == core::Participation::kTrain) {
    mistakes.Add(absl::StrCat(
        OriginOf(loaded, "data.train.paths"),
        ": data.train.paths: found []; allowed: the files to train on, ",
        FindSetting("data.train.paths")->allowed,
        ", or participation: mix or observe"));
  }
  return mistakes.ToStatus();
}

}  // namespace dfl::config
