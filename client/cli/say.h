// Notices on standard error: standard output is for data.
#ifndef STOWAGE_CLIENT_CLI_SAY_H_
#define STOWAGE_CLIENT_CLI_SAY_H_

#include <string>

namespace stowage {

// "stowage: <what>" on stderr: notices that are no errors.
void Say(const std::string& what);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_SAY_H_
