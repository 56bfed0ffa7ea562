// The parts of a diagnosis, from the bottom up. Internal to client/rpc: doctor.h is what others use.
//
// Each adds what it finds and says whether to go on.
#ifndef STOWAGE_CLIENT_RPC_DOCTOR_CHECKS_H_
#define STOWAGE_CLIENT_RPC_DOCTOR_CHECKS_H_

#include <string>

#include "client/rpc/doctor.h"

namespace stowage {

// Collects findings.
class Examination {
 public:
  Examination(const GrpcOptions& of, const DoctorOptions& how) : server(of), options(how) {}

  void Good(const std::string& what) { Add(Finding::Kind::kGood, what, ""); }
  void Note(const std::string& what, const std::string& remedy) {
    Add(Finding::Kind::kNote, what, remedy);
  }
  // Always false: what lies above cannot work.
  bool Wrong(const std::string& what, const std::string& remedy) {
    Add(Finding::Kind::kWrong, what, remedy);
    return false;
  }

  // What servers and certificates say goes to a terminal: control characters are replaced.
  void Add(Finding::Kind kind, const std::string& what, const std::string& remedy);

  const GrpcOptions& server;
  const DoctorOptions& options;
  Diagnosis diagnosis;
};

// doctor.cc: options, files, environment.
bool CheckOptions(Examination* examination);
void CheckEnvironment(Examination* examination);
// doctor_peer.cc: the socket and who listens there.
bool CheckPeer(Examination* examination);
// doctor_tls.cc
bool CheckTls(Examination* examination);
// doctor_service.cc: what the server says of itself and of the caller.
bool CheckService(Examination* examination);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_DOCTOR_CHECKS_H_
