// The commands that train, in a build that cannot.
#include "client/cli/commands.h"

namespace stowage {
namespace {

Command Missing(const char* name, const char* summary) {
  Command command{name, summary, {}, nullptr};
  command.missing = "this build has no LibTorch: it was made with -DSTOWAGE_TORCH=OFF";
  return command;
}

}  // namespace

Command ProfileCommand() {
  return Missing("profile", "measure what every stage of a network costs in time and bytes");
}

Command RunCommand() {
  return Missing("run", "train a network without a budget and within budgets, and compare");
}

Command VerifyCommand() {
  return Missing("verify", "prove that training by plans is plain training, bit for bit");
}

}  // namespace stowage
