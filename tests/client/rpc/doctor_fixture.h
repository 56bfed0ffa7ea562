// A server, and what the doctor says of it.
#ifndef STOWAGE_TESTS_CLIENT_RPC_DOCTOR_FIXTURE_H_
#define STOWAGE_TESTS_CLIENT_RPC_DOCTOR_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/doctor.h"
#include "solvers/base/version.h"
#include "solvers/model/canonical.h"
#include "tests/client/rpc/fake_server.h"
#include "tests/client/rpc/test_certificates.h"

namespace stowage {

inline constexpr char kSecret[] = "s3cr3t-t0k3n";

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() { how_.patience = std::chrono::milliseconds(5000); }

  static std::string Here(int port) { return absl::StrCat("localhost:", port); }

  void Serve(std::shared_ptr<grpc::ServerCredentials> credentials = nullptr) {
    server_ = std::make_unique<FakeServer>("localhost:0", 0, std::move(credentials));
    options_.address = Here(server_->port());
    server_->capabilities = [this](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
      out->set_server_version(kVersion);
      out->set_key_encoding_version(kEncodingVersion);
      out->add_implemented_rpcs("ComputePlan");
      if (spoil_) spoil_(out);
      return answer_;
    };
  }

  void UseTls(const TestAuthority& authority) {
    options_.tls.enabled = true;
    options_.tls.ca_file = folder_.Write("ca.pem", authority.cert());
  }

  Diagnosis Look() const { return Diagnose(options_, how_); }

  // One thing is wrong, said in these words, with something to do about it.
  void ExpectWrong(const testing::Matcher<std::string>& words) const {
    const Diagnosis diagnosis = Look();
    const std::string text = DiagnosisText(diagnosis);
    EXPECT_FALSE(diagnosis.healthy()) << text;
    ASSERT_FALSE(diagnosis.findings.empty());
    const Finding& last = diagnosis.findings.back();
    EXPECT_EQ(last.kind, Finding::Kind::kWrong) << text;
    EXPECT_THAT(last.what, words);
    EXPECT_FALSE(last.remedy.empty()) << text;
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(kSecret)));
  }

  TestAuthority authority_{"test authority"};
  CredentialFolder folder_;
  GrpcOptions options_;
  DoctorOptions how_;
  absl::Status answer_;
  std::function<void(v1::GetCapabilitiesResponse*)> spoil_;
  std::unique_ptr<FakeServer> server_;  // ends first: its threads read the others
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_DOCTOR_FIXTURE_H_
