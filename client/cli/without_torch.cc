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

Command ProfileCommand() { return Missing("profile", kProfileSummary); }

Command RunCommand() { return Missing("run", kRunSummary); }

Command VerifyCommand() { return Missing("verify", kVerifySummary); }

}  // namespace stowage
