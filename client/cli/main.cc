#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/command_line.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/training_commands.h"

namespace {

// In the order in which a user meets them.
std::vector<stowage::Command> Commands() {
  return {
      stowage::ProfileCommand(),      //
      stowage::FitCommand(),          //
      stowage::PlanCommand(),         //
      stowage::FrontierCommand(),     //
      stowage::ExplainCommand(),      //
      stowage::CompareCommand(),      //
      stowage::PipelineCommand(),     //
      stowage::CheckpointsCommand(),  //
      stowage::ReportCommand(),       //
      stowage::TraceCommand(),        //
      stowage::RunCommand(),          //
      stowage::VerifyCommand(),       //
      stowage::SolversCommand(),      //
      stowage::DoctorCommand(),       //
      stowage::CacheCommand(),        //
      stowage::DecisionsCommand(),    //
      stowage::CatalogueCommand(),    //
  };
}

}  // namespace

int main(int argc, char** argv) {
  const int code = stowage::RunCommandLine(Commands(), {argv + 1, argv + argc});
  // A full disk is not to look like an answer.
  if (std::cout.flush()) return code;
  return stowage::Fail(absl::UnknownError("cannot write to standard output"));
}
