// dflctl token create|list|revoke|serve: one-time join tokens, with which new
// nodes get their certificates. Works on the folder of the network's authority,
// and needs no daemon.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/cert_files.h"
#include "cli/cert_folder.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "daemon/base/ids.h"
#include "daemon/base/status_macros.h"
#include "daemon/enrol/issuer.h"
#include "daemon/enrol/join_token.h"
#include "daemon/enrol/token_book.h"
#include "daemon/tls/authority.h"
#include "daemon/tls/certificate.h"

namespace dfl::cli {
namespace {

constexpr char kDefaultListen[] = "0.0.0.0:7602";
constexpr absl::Duration kLook = absl::Milliseconds(100);

struct TokenCommand {
  CertFolderChoice folder;
  std::string node;
  std::string id;
  std::string ttl = "1h";
  std::string listen = kDefaultListen;
  int days = 365;
};

struct Book {
  CertFolder folder;
  enrol::TokenBook book;
};

absl::StatusOr<Book> OpenBook(Context& context, const TokenCommand& command) {
  DFL_ASSIGN_OR_RETURN(
      CertFolder folder,
      CertFolder::Find(context.io().environment, command.folder));
  DFL_ASSIGN_OR_RETURN(enrol::TokenBook book,
                       enrol::TokenBook::Open(folder.path()));
  return Book{std::move(folder), std::move(book)};
}

std::string TimeJson(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

std::string FolderFlags(const TokenCommand& command) {
  if (!command.folder.dir.empty()) return " --dir " + command.folder.dir;
  if (!command.folder.cluster.empty()) {
    return " --cluster " + command.folder.cluster;
  }
  return "";
}

ExitCode Create(Context& context, const TokenCommand& command) {
  const absl::Status valid = ValidateNodeName(command.node);
  if (!valid.ok()) return context.Usage(Annotate(valid, "--node"));
  absl::Duration ttl;
  if (!absl::ParseDuration(command.ttl, &ttl)) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--ttl: \"", command.ttl,
                     "\" is no duration; write it as 30m, 1h or 24h")));
  }
  const absl::StatusOr<Book> opened = OpenBook(context, command);
  if (!opened.ok()) return context.Fail(opened.status());
  const absl::StatusOr<tls::Authority> authority =
      opened->folder.LoadAuthority();
  if (!authority.ok()) return context.Fail(authority.status());
  const std::string& pin = authority->certificate().fingerprint();
  const absl::StatusOr<enrol::JoinToken> token = opened->book.Create(
      authority->cluster(), command.node, pin, ttl, absl::Now());
  if (!token.ok()) {
    return absl::IsInvalidArgument(token.status())
               ? context.Usage(Annotate(token.status(), "--ttl"))
               : context.Fail(token.status());
  }
  const std::string text = enrol::ToText(*token);
  context.Print(Json{{"token", text},
                     {"id", enrol::TokenId(token->secret)},
                     {"cluster", token->cluster},
                     {"node", token->node},
                     {"expires", TimeJson(token->expires)},
                     {"issuer", token->issuer},
                     {"authority_sha256", token->authority_sha256}},
                [&] { return text + "\n"; });
  context.Say(
      absl::StrCat("whoever has this line first gets the certificate of ",
                   token->node, ", until ", tls::TimeText(token->expires),
                   ": send it over a safe way. It can be used once.\n"
                   "next: here `dflctl token serve",
                   FolderFlags(command), "`, and on ", token->node,
                   " `dfld join TOKEN --at THIS-HOST:7602`"));
  return kOk;
}

ExitCode List(Context& context, const TokenCommand& command) {
  const absl::StatusOr<Book> opened = OpenBook(context, command);
  if (!opened.ok()) return context.Fail(opened.status());
  const absl::StatusOr<std::vector<enrol::TokenEntry>> tokens =
      opened->book.List(absl::Now());
  if (!tokens.ok()) return context.Fail(tokens.status());
  Json json{{"folder", opened->folder.path()},
            {"issuer", opened->book.issuer()},
            {"tokens", Json::array()}};
  Table table({"ID", "NODE", "STATE", "CREATED", "EXPIRES", "ENDED"});
  for (const enrol::TokenEntry& token : *tokens) {
    const std::string state(enrol::Name(token.state));
    json["tokens"].push_back(
        Json{{"id", token.id},
             {"node", token.node},
             {"state", state},
             {"created", TimeJson(token.created)},
             {"expires", TimeJson(token.expires)},
             {"ended", token.ended.has_value() ? Json(TimeJson(*token.ended))
                                               : Json(nullptr)}});
    table.Add({token.id, token.node, state, tls::TimeText(token.created),
               tls::TimeText(token.expires),
               token.ended.has_value() ? tls::TimeText(*token.ended) : "-"});
  }
  context.Print(json, [&] { return table.ToString(); });
  return kOk;
}

ExitCode Revoke(Context& context, const TokenCommand& command) {
  const absl::StatusOr<Book> opened = OpenBook(context, command);
  if (!opened.ok()) return context.Fail(opened.status());
  const absl::Status revoked = opened->book.Revoke(command.id, absl::Now());
  if (!revoked.ok()) return context.Fail(revoked);
  context.Print(Json{{"id", command.id}, {"state", "revoked"}}, [&] {
    return absl::StrCat("join token ", command.id, " is revoked\n");
  });
  return kOk;
}

ExitCode Serve(Context& context, const TokenCommand& command) {
  const absl::StatusOr<tls::Validity> validity = ValidityOf(command.days);
  if (!validity.ok()) return context.Usage(validity.status());
  const absl::StatusOr<CertFolder> folder =
      CertFolder::Find(context.io().environment, command.folder);
  if (!folder.ok()) return context.Fail(folder.status());
  const InterruptScope interrupt;
  absl::Mutex mutex;  // stderr
  enrol::IssuerOptions options;
  options.folder = folder->path();
  options.listen = command.listen;
  options.lifetime = validity->lifetime;
  options.note = [&](const enrol::IssuerNote& note) {
    absl::MutexLock lock(&mutex);
    context.Say(Printable(enrol::NoteText(note)));
  };
  const absl::StatusOr<std::unique_ptr<enrol::Issuer>> issuer =
      enrol::Issuer::Start(std::move(options));
  if (!issuer.ok()) return context.Fail(issuer.status());
  context.Print(
      Json{{"folder", folder->path()}, {"address", (*issuer)->address()}},
      [&] { return absl::StrCat("serving at ", (*issuer)->address(), "\n"); });
  context.io().out.flush();
  {
    absl::MutexLock lock(&mutex);
    context.Say("new nodes can redeem their join tokens here; end with Ctrl-C");
  }
  while (!InterruptScope::Requested()) absl::SleepFor(kLook);
  return kOk;
}

void AddFolder(CLI::App& command, TokenCommand& parsed) {
  command.add_option("--dir", parsed.folder.dir,
                     "The network's folder. Default: ~/.config/dfl/CLUSTER");
  command.add_option("--cluster", parsed.folder.cluster,
                     "The network, where there are several in ~/.config/dfl");
}

using Run = ExitCode (*)(Context&, const TokenCommand&);

// Adds a command that fills a TokenCommand of its own.
std::pair<CLI::App*, std::shared_ptr<TokenCommand>> AddVerb(
    CLI::App& noun, Chosen& chosen, const std::string& name,
    const std::string& description, const std::string& example, Run run) {
  auto parsed = std::make_shared<TokenCommand>();
  CLI::App* command = AddCommand(noun, name, description, example);
  command->callback([&chosen, parsed, run] {
    chosen = [parsed, run](Context& context) { return run(context, *parsed); };
  });
  AddFolder(*command, *parsed);
  return {command, parsed};
}

}  // namespace

void AddToken(CLI::App& app, Chosen& chosen) {
  CLI::App* noun = AddCommand(
      app, "token", "Join tokens, with which new nodes get their certificates",
      "create --node gateway-08");
  noun->require_subcommand(1);
  const auto [create, created] =
      AddVerb(*noun, chosen, "create",
              "Make a join token for one node, to be used once",
              "--node gateway-08 --ttl 1h", Create);
  create->add_option("--node", created->node, "The new node's name")
      ->required();
  create->add_option("--ttl", created->ttl, "How long it can be used: 30m, 24h")
      ->capture_default_str();
  AddVerb(*noun, chosen, "list",
          "Tokens of this issuer: open, spent, revoked or expired", "-o json",
          List);
  const auto [revoke, revoked] = AddVerb(
      *noun, chosen, "revoke", "Make a token that was not spent useless",
      "1f6b0c9d2a4e8f73", Revoke);
  revoke->add_option("ID", revoked->id, "As dflctl token list shows it")
      ->required();
  const auto [serve, served] = AddVerb(
      *noun, chosen, "serve",
      "Redeem the tokens of this issuer until Ctrl-C: sign certificates",
      "--listen 0.0.0.0:7602", Serve);
  serve->add_option("--listen", served->listen, "host:port; port 0: any")
      ->capture_default_str();
  serve->add_option("--days", served->days, "How long a certificate is valid")
      ->capture_default_str();
}

}  // namespace dfl::cli
