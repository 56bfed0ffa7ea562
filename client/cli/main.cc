#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/commands.h"

namespace {

// In the order in which a user meets them.
std::vector<stowage::Command> Commands() {
  return {
      stowage::ProfileCommand(),    //
      stowage::FitCommand(),        //
      stowage::PlanCommand(),       //
      stowage::FrontierCommand(),   //
      stowage::ExplainCommand(),    //
      stowage::CompareCommand(),    //
      stowage::ReportCommand(),     //
      stowage::TraceCommand(),      //
      stowage::RunCommand(),        //
      stowage::VerifyCommand(),     //
      stowage::SolversCommand(),    //
      stowage::DoctorCommand(),     //
      stowage::CacheCommand(),      //
      stowage::CatalogueCommand(),  //
  };
}

}  // namespace

int main(int argc, char** argv) {
  return stowage::RunCommandLine(Commands(), {argv + 1, argv + argc});
}
