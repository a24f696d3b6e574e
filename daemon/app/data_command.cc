#include "daemon/app/data_command.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/app/daemon.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/daemon_command_line.h"
#include "daemon/config/guess_data.h"
#include "daemon/config/node_contract.h"
#include "daemon/config/node_data.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/core/contract/agreement.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/report.h"
#include "daemon/ports/learner.h"

namespace dfl::app {
namespace {

constexpr char kHelp[] =
    "dfld data: guesses how data files are to be read.\n"
    "\n"
    "Usage: dfld data FILE...\n"
    "\n"
    "FILE is one of the files to train on or, with \"test\" or \"val\" in its\n"
    "name, to test on; or a folder that has a subfolder of PNG or JPEG files\n"
    "for each class. All are of one format: CSV, LIBSVM, NumPy's npz and npy,\n"
    "MNIST's idx, CIFAR-10's binary version, pictures.\n"
    "\n"
    "The section data of a configuration file is written to stdout, and read\n"
    "once as the daemon would read it. What was taken for granted, what the\n"
    "files hold and warnings are on stderr: look at them, a guess may be "
    "wrong.\n"
    "\n"
    "Exit codes: 0 ok, 1 failed, 2 usage, 78 the files cannot be read.\n"
    "\n"
    "Example: dfld data patients.csv patients_test.csv "
    ">/etc/dfld/conf.d/data.yaml\n"
    "         dfld --check\n";

void PrintFields(const core::DataContract& contract,
                 absl::Span<const core::ContractField> fields) {
  for (const core::ContractField field : fields) {
    std::cout << "  " << core::FieldName(field) << ": "
              << core::FieldText(contract, field) << "\n";
  }
}

// Reads the node's rows and prints what they are; without `has_plan`, also what
// they say of the data contract.
absl::Status PrintReport(const config::DataSettings& data, bool has_plan) {
  DFL_ASSIGN_OR_RETURN(const config::DataFiles files,
                       config::ReadDataFiles(data, "data"));
  DFL_ASSIGN_OR_RETURN(
      const config::NodeData part,
      config::TakePart(files, data, data.partition.index, "data"));
  std::cout << data::ReportText(data::Describe(
      part.train, part.test ? &*part.test : nullptr, part.standardizer));
  if (has_plan) return absl::OkStatus();
  const core::DataOffer offer = config::MakeOffer(part, data, {});
  core::DataContract contract;
  contract.task = offer.task;
  contract.classes = offer.classes;
  contract.features = offer.features;
  contract.shape = offer.shape;
  contract.input = offer.input;
  std::cout
      << "contract, as far as these rows say it (loss and model come with "
         "a plan: run.plan, or dflctl plan apply --dry-run):\n";
  constexpr core::ContractField kOfData[] = {
      core::ContractField::kTask, core::ContractField::kClasses,
      core::ContractField::kFeatures, core::ContractField::kShape,
      core::ContractField::kInput};
  PrintFields(contract, kOfData);
  return absl::OkStatus();
}

// Builds the model of the plan that the settings name.
absl::Status TryModel(const std::string& path, LearnerFactory& learners) {
  DFL_ASSIGN_OR_RETURN(const std::string text,
                       config::ReadTextFile(path, config::kMaxPlanBytes));
  DFL_ASSIGN_OR_RETURN(const core::RunPlan plan, config::ParsePlan(text, path));
  DFL_ASSIGN_OR_RETURN(const core::DataOffer offer,
                       learners.Offer(&plan.model, plan.data));
  DFL_ASSIGN_OR_RETURN(const core::DataContract contract,
                       core::Resolve(plan.data, plan.model.classes, offer));
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<ports::Learner> learner,
                       learners.Build(plan.model, contract, plan.batch_size));
  const ports::ModelInfo& model = learner->model();
  std::cout << "model:    " << model.kind << ", " << model.parameter_count
            << " parameters\n";
  PrintFields(model.contract, core::kContractFields);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckData(
    const config::NodeSettings& settings,
    const std::function<absl::StatusOr<std::unique_ptr<LearnerFactory>>(
        const config::NodeSettings&)>& open_learners) {
  const bool has_plan = !settings.run.plan.empty();
  if (settings.data.train_paths.empty()) {
    std::cout << "data:     none; this node does not train\n";
    return absl::OkStatus();
  }
  DFL_RETURN_IF_ERROR(PrintReport(settings.data, has_plan));
  if (!has_plan) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(const std::unique_ptr<LearnerFactory> learners,
                       open_learners(settings));
  const absl::Status tried = TryModel(settings.run.plan, *learners);
  return tried.ok() ? tried : Annotate(tried, "run.plan");
}

bool IsDataCommand(int argc, const char* const* argv) {
  return argc > 1 && absl::string_view(argv[1]) == "data";
}

int DataMain(int argc, const char* const* argv) {
  std::vector<std::string> paths;
  for (int i = 2; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::cout << kHelp;
      return kExitOk;
    }
    if (absl::StartsWith(argument, "-")) {
      std::cerr << "dfld: argument " << argument
                << ": no flag of dfld data; allowed: files, or --help\n";
      return kExitUsage;
    }
    paths.emplace_back(argument);
  }
  if (paths.empty()) {
    std::cerr << "dfld: no files given; allowed: dfld data FILE..., see dfld "
                 "data --help\n";
    return kExitUsage;
  }
  const absl::StatusOr<config::DataGuess> guess = config::GuessData(paths);
  if (!guess.ok()) {
    std::cerr << "dfld: " << guess.status().message() << "\n";
    return kExitConfig;
  }
  for (const std::string& remark : guess->remarks) {
    std::cerr << "guessed: " << remark << "\n";
  }
  std::cerr << data::ReportText(guess->report);
  std::cout << config::DataSectionYaml(guess->settings);
  return kExitOk;
}

}  // namespace dfl::app
