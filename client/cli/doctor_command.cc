#include <iostream>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "client/rpc/doctor.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

const char* KindName(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kGood:
      return "good";
    case Finding::Kind::kNote:
      return "note";
    case Finding::Kind::kWrong:
      return "wrong";
  }
  return "?";
}

Listing ListingOf(const Diagnosis& diagnosis) {
  Listing listing({{"kind", "", "kind"}, {"what", "", "what"}, {"remedy", "", "remedy"}});
  for (const Finding& finding : diagnosis.findings) {
    listing.AddRow({Listing::Text(KindName(finding.kind)), Listing::Text(finding.what),
                    Listing::Text(finding.remedy)});
  }
  return listing;
}

int RunDoctor() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const GrpcOptions server = ServerFromFlags();
  if (server.address.empty()) {
    return Fail(FieldError("--server", "\"\"",
                           "must name a stowaged: without one plans are made in this process"));
  }
  const Diagnosis diagnosis = Diagnose(server);
  std::cout << (*format == Format::kText ? DiagnosisText(diagnosis)
                                         : ListingOf(diagnosis).As(*format));
  return diagnosis.healthy() ? kExitOk : kExitFailure;
}

}  // namespace

Command DoctorCommand() {
  return {"doctor",
          "find out why a server cannot be used",
          WithServerFlags({"format"}),
          RunDoctor,
          {"doctor --server=localhost:7070"}};
}

}  // namespace stowage
