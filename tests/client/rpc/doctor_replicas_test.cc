// The doctor before an address that stands for several servers.
#include "tests/client/rpc/doctor_fixture.h"

namespace stowage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Calls are spread over two servers.
class DoctorOfReplicasTest : public DoctorTest {
 protected:
  DoctorOfReplicasTest() {
    Serve();
    second_ = std::make_unique<FakeServer>("localhost:0");
    second_->capabilities = [this](const grpc::ServerContext&, v1::GetCapabilitiesResponse* out) {
      out->set_server_version(kVersion);
      out->set_key_encoding_version(kEncodingVersion);
      out->add_implemented_rpcs("ComputePlan");
      out->set_role(role_of_second_);
      return absl::OkStatus();
    };
    first_address_ = absl::StrCat("127.0.0.1:", server_->port());
    second_address_ = absl::StrCat("127.0.0.1:", second_->port());
    options_.address = absl::StrCat("ipv4:", first_address_, ",", second_address_);
  }

  std::unique_ptr<FakeServer> second_;
  std::string role_of_second_;
  std::string first_address_;
  std::string second_address_;
};

TEST_F(DoctorOfReplicasTest, EachIsLookedAt) {
  const Diagnosis diagnosis = Look();
  EXPECT_TRUE(diagnosis.healthy()) << DiagnosisText(diagnosis);
  EXPECT_THAT(DiagnosisText(diagnosis),
              AllOf(HasSubstr("stands for 2 servers: " + first_address_ + ", " + second_address_),
                    HasSubstr("good   stowaged at " + first_address_ + " answers"),
                    HasSubstr("good   stowaged at " + second_address_ + " answers")));
}

TEST_F(DoctorOfReplicasTest, OneThatIsAwayIsWorthANoteAndAllAreWrong) {
  second_.reset();
  const Diagnosis one = Look();
  EXPECT_TRUE(one.healthy()) << DiagnosisText(one);
  EXPECT_THAT(DiagnosisText(one), HasSubstr("note   nothing listens at " + second_address_));
  server_.reset();
  const Diagnosis none = Look();
  EXPECT_FALSE(none.healthy());
  EXPECT_THAT(DiagnosisText(none),
              AllOf(HasSubstr("WRONG  nothing listens at " + first_address_),
                    HasSubstr("WRONG  nothing listens at " + second_address_)));
}

// Half of the keys would fail.
TEST_F(DoctorOfReplicasTest, OneThatConnectsAndRefusesIsWrongAndNamed) {
  role_of_second_ = "reader";
  const Diagnosis diagnosis = Look();
  EXPECT_FALSE(diagnosis.healthy());
  EXPECT_THAT(DiagnosisText(diagnosis), AllOf(HasSubstr("good   stowaged at " + first_address_),
                                              HasSubstr("WRONG  " + second_address_ + ": ")));
}

TEST_F(DoctorOfReplicasTest, EachMustHaveAPort) {
  options_.address = absl::StrCat("ipv4:", first_address_, ",127.0.0.1");
  ExpectWrong(HasSubstr("port"));
}

// One address, or one of each family of which one may be nobody's.
TEST_F(DoctorOfReplicasTest, ANameMayStandForSeveral) {
  options_.address = absl::StrCat("dns:///localhost:", server_->port());
  EXPECT_TRUE(Look().healthy()) << DiagnosisText(Look());
}

}  // namespace
}  // namespace stowage
