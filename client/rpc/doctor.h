// Finds out why a server cannot be used: the usual mistakes, which all look like UNAVAILABLE from
// above, each with one line of what is wrong and one of what to do.
#ifndef STOWAGE_CLIENT_RPC_DOCTOR_H_
#define STOWAGE_CLIENT_RPC_DOCTOR_H_

#include <chrono>
#include <string>
#include <vector>

#include "client/rpc/grpc_options.h"

namespace stowage {

struct Finding {
  enum class Kind {
    kGood,
    kNote,   // worth knowing; nothing need be done
    kWrong,  // the server cannot be used until it is mended
  };
  Kind kind = Kind::kGood;
  std::string what;
  std::string remedy;  // empty where there is nothing to do
};

struct Diagnosis {
  std::vector<Finding> findings;  // in the order in which they were looked at

  bool healthy() const;
};

struct DoctorOptions {
  // Of each step: resolving aside, connecting, shaking hands, a call.
  std::chrono::milliseconds patience{2000};
  // The fastest of a few small calls that takes longer is a note.
  std::chrono::milliseconds slow_link{50};
};

// Looks from the bottom up and stops at the first thing that is wrong, for what lies above it cannot
// work: options and files, the name, the socket, who listens, TLS, the caller's rights, versions. Where
// calls are spread over several addresses, looks at each and says at which something is wrong; one that
// cannot be connected to is worth a note while others can.
// Blocks; never fails. Prints nothing that is secret. Thread-safe.
Diagnosis Diagnose(const GrpcOptions& server, const DoctorOptions& options = {});

// "good   stowaged 0.1.0 answers ...", one or two lines per finding.
std::string DiagnosisText(const Diagnosis& diagnosis);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_DOCTOR_H_
