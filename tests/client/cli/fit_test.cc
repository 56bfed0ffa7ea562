// `stowage fit` and `stowage catalogue`, as a user meets them.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "proto/codec/codec.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/device_kinds.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/client/cli/command_output.h"
#include "tests/client/cli/stowage_command.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

constexpr char kCatalogue[] = " --catalogue=" STOWAGE_SOURCE_DIR "/solvers/zoo/data";
// Small enough that plans are found in milliseconds.
constexpr char kSmall[] =
    "fit --model=resnet18 --image_size=64 --classes=10 --device=v100 --catalogue=none "
    "--memory=400MiB --reserved=0 --slots=200";

int64_t Number(const Fields& fields, const std::string& name) {
  return static_cast<int64_t>(fields.at(name).number_value());
}

Simulation Plain(int64_t batch) {
  const Chain chain = *NetworkChain({"resnet18", 64, batch, 10}, ModelledV100());
  return *Instance(chain).store_all();
}

TEST(Fit, SaysWhatFitsAndWhatIsFastest) {
  const Result result = Stowage(std::string(kSmall) + " --format=json");
  ASSERT_EQ(result.code, kExitOk) << result.out;
  const google::protobuf::Struct json = Json(result.out);
  const Fields& fields = json.fields();
  EXPECT_TRUE(fields.at("modelled").bool_value());
  EXPECT_EQ(fields.at("device").string_value(), "v100");
  const int64_t budget = Number(fields, "activation_bytes");
  const int64_t largest_plain = Number(fields, "largest_plain");
  EXPECT_LE(Plain(largest_plain).peak.value(), budget);
  EXPECT_GT(Plain(largest_plain + 1).peak.value(), budget);
  const int64_t largest = Number(fields, "largest");
  EXPECT_GT(largest, largest_plain);
  double best = 0;
  bool beyond = false;
  for (const auto& value : fields.at("batches").list_value().values()) {
    const Fields& row = value.struct_value().fields();
    const int64_t batch = Number(row, "batch");
    const Simulation plain = Plain(batch);
    EXPECT_EQ(Number(row, "plain_peak_bytes"), plain.peak.value());
    EXPECT_EQ(row.at("plain_fits").bool_value(), plain.peak.value() <= budget) << batch;
    const std::string by = row.at("by").string_value();
    beyond |= batch > largest;
    EXPECT_TRUE(batch <= largest || by == "does not fit") << batch;
    if (by == "does not fit") {
      EXPECT_TRUE(row.at("peak_bytes").has_null_value());
      continue;
    }
    EXPECT_EQ(by, plain.peak.value() <= budget ? "plain" : "plan") << batch;
    EXPECT_LE(Number(row, "peak_bytes"), budget) << batch;
    EXPECT_GE(Number(row, "makespan_ns"), plain.makespan.value()) << batch;
    EXPECT_GE(row.at("overhead").number_value(), 0);
    best = std::max(best, row.at("samples_per_second").number_value());
  }
  EXPECT_TRUE(beyond);
  EXPECT_DOUBLE_EQ(fields.at("samples_per_second").number_value(), best);
}

TEST(Fit, ShowsTheSumOfTheMemory) {
  const Result result = Stowage(std::string(kSmall) + " --optimizer=adam --reserved=10%");
  ASSERT_EQ(result.code, kExitOk) << result.out;
  for (const char* part :
       {"400.00 MiB", "- parameters", "- gradients (to be allocated)",
        "- optimizer state (Adam, estimated)", "- reserve (10% of the device)", "= activations",
        "largest batch, plain training", "largest batch, by plans", "fastest batch", "samples",
        "All times are modelled, none was measured."}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const auto activations = [](const std::string& flags) {
    const Result one = Stowage(absl::StrCat(kSmall, " --max_batch=4 --format=json ", flags));
    return Number(Json(one.out).fields(), "activation_bytes");
  };
  const int64_t parameters = (int64_t{400} << 20) - activations("--optimizer=none");
  EXPECT_GT(parameters, int64_t{2} * 11'000'000 * 4);
  EXPECT_EQ(activations("--optimizer=sgd"), activations("--optimizer=none"));
  const int64_t momentum = activations("--optimizer=none") - activations("--optimizer=momentum");
  EXPECT_EQ(activations("--optimizer=none") - activations("--optimizer=adam"), 2 * momentum);
  EXPECT_EQ(activations("--optimizer=none") - activations("--reserved=1MiB"), 1 << 20);
}

TEST(Fit, ABatchFitsOrNot) {
  const std::string command = std::string(kSmall) + " --batch=";
  const Fields fields = Json(Stowage(std::string(kSmall) + " --format=json").out).fields();
  const int64_t plain = Number(fields, "largest_plain"), largest = Number(fields, "largest");
  const Result fits = Stowage(command + std::to_string(plain));
  EXPECT_EQ(fits.code, kExitOk);
  EXPECT_THAT(fits.out, HasSubstr(absl::StrCat("batch ", plain, " fits without a plan")));
  const Result by_plan = Stowage(command + std::to_string(plain + 2));
  EXPECT_EQ(by_plan.code, kExitOk);
  EXPECT_THAT(by_plan.out,
              HasSubstr(absl::StrCat("batch ", plain + 2, " fits by a plan (solved)")));
  const Result not_at_all = Stowage(command + std::to_string(largest + 64));
  EXPECT_EQ(not_at_all.code, kExitInfeasible);
  EXPECT_THAT(not_at_all.out, HasSubstr("does not fit, plain or by a plan"));
}

// Copies run beside compute: what would be recomputed can be fetched.
TEST(Fit, PlansMayCopyToHostMemory) {
  constexpr int64_t kBatch = 180;
  const auto step = [](const std::string& flags) {
    const Result result =
        Stowage(absl::StrCat(kSmall, " --batch=", kBatch, " --format=json ", flags));
    const google::protobuf::Struct json = Json(result.out);
    for (const auto& value : json.fields().at("batches").list_value().values()) {
      const Fields& row = value.struct_value().fields();
      if (Number(row, "batch") == kBatch) return Number(row, "makespan_ns");
    }
    return int64_t{0};
  };
  ASSERT_GT(step(""), Plain(kBatch).makespan.value());
  EXPECT_LT(step("--offload"), step(""));
}

TEST(Fit, WrongUsageIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"fit --device=abacus", "there is no kind of device 'abacus'; there are t4, v100"},
      {"fit --model=skynet", "there is no network 'skynet'"},
      {"fit --optimizer=lion", "must be none, sgd, momentum or adam"},
      {"fit --memory=much", "--memory"},
      {"fit --memory=60%", "must be bytes"},
      {"fit --reserved=least", "--reserved"},
      {"fit --memory=50MiB", "leaves nothing for activations"},
      {"fit --batch=-1", "--batch"},
      {"fit --max_batch=-1", "max_batch_size"},
      {"fit --profiles=p.json", "as many batch sizes as --profiles has files"},
      {"fit --profiles=/nonexistent --batches=4", "/nonexistent"},
      {"fit --profiles=/nonexistent --batches=few", "must be a number"},
      {"fit --catalogue=/nonexistent", "/nonexistent"},
      {"fit --format=xml", "--format"},
  };
  for (const auto& [arguments, why] : cases) {
    const Result result = Stowage(arguments, true);
    EXPECT_EQ(result.code, kExitUsage) << arguments << "\n" << result.out;
    EXPECT_THAT(result.out, HasSubstr(why)) << arguments;
  }
  EXPECT_THAT(Stowage("fit --help").out, HasSubstr("--batch=0\n"));
  EXPECT_THAT(Stowage("profile --help").out, Not(HasSubstr("--batch=0\n")));
}

TEST(Fit, SaysWhichPlansAreTheCatalogues) {
  const std::string command =
      std::string("fit --model=resnet50 --device=v100 --batch=256") + kCatalogue;
  const Result text = Stowage(command);
  ASSERT_EQ(text.code, kExitOk) << text.out;
  EXPECT_THAT(text.out, HasSubstr("batch 256 fits by a plan (from the catalogue)"));
  EXPECT_THAT(text.out, HasSubstr("Plans named 'catalogue' were solved beforehand."));
  const Fields with = Json(Stowage(command + " --format=json").out).fields();
  const auto at_256 = [](const Fields& fields) {
    for (const auto& value : fields.at("batches").list_value().values()) {
      const Fields& row = value.struct_value().fields();
      if (Number(row, "batch") == 256) return row;
    }
    return Fields();
  };
  const Fields known = at_256(with);
  EXPECT_EQ(known.at("by").string_value(), "catalogue");
  // Who names a solver gets that solver's plans.
  const Fields named =
      Json(Stowage(command + " --solver=optimal_persistent --format=json").out).fields();
  EXPECT_EQ(at_256(named).at("by").string_value(), "plan");
  EXPECT_LE(Number(known, "peak_bytes"), Number(with, "activation_bytes"));
}

// Sequences are their samples; the head's weight is counted once, its gradient's sum with it.
TEST(Fit, TakesDecoders) {
  const std::string command =
      std::string("fit --model=gpt2 --length=512 --device=v100") + kCatalogue;
  const Result text = Stowage(command + " --max_batch=32 --slots=100");
  ASSERT_EQ(text.code, kExitOk) << text.out;
  EXPECT_THAT(text.out, HasSubstr("gpt2, sequences of 512 tokens, on v100"));
  EXPECT_THAT(text.out, HasSubstr("- sums of tied parameters' gradients"));
  EXPECT_THAT(text.out, HasSubstr("147.24 MiB"));  // 50,257 tokens, 768 wide
  EXPECT_THAT(text.out, HasSubstr("catalogue"));
}

TEST(Fit, GoesByProfiles) {
  const TemporaryFolder folder;
  const std::string eight = folder / "p8.json", sixteen = folder / "p16.json";
  for (const auto& [batch, path] : {std::pair(8, eight), std::pair(16, sixteen)}) {
    const Result written = Stowage(absl::StrCat(
        "catalogue export resnet18 --device=v100 --batch=", batch, " --out=", path, kCatalogue));
    ASSERT_EQ(written.code, kExitOk) << written.out;
  }
  const std::string command = absl::StrCat("fit --batches=8,16 --profiles=", eight, ",", sixteen,
                                           " --reserved=0 --slots=200");
  const Fields fields =
      Json(Stowage(command + " --memory=2GiB --parameters=45MiB --format=json").out).fields();
  EXPECT_EQ(Number(fields, "activation_bytes"), (int64_t{2} << 30) - (90 << 20));
  EXPECT_GT(Number(fields, "largest"), Number(fields, "largest_plain"));
  const Result text = Stowage(command + " --memory=2GiB");
  EXPECT_THAT(text.out, HasSubstr("All times are modelled"));
  EXPECT_THAT(text.out, HasSubstr("extrapolated along straight lines"));
  // A network is the same at all batch sizes.
  const Result other = Stowage(absl::StrCat("fit --memory=2GiB --batches=8,16 --profiles=", eight,
                                            ",", Data("chain_gpt_24.json")),
                               true);
  EXPECT_EQ(other.code, kExitUsage) << other.out;
  EXPECT_THAT(other.out, HasSubstr("profiles[1]"));
}

TEST(Catalogue, ListsAndShowsWhatIsInIt) {
  const Result list = Stowage(std::string("catalogue ls") + kCatalogue);
  EXPECT_EQ(list.code, kExitOk);
  EXPECT_THAT(list.out, HasSubstr("resnet50"));
  EXPECT_THAT(list.out, HasSubstr("8 16 32 64 128 256"));
  const Result show = Stowage(std::string("catalogue show resnet50 --batch=64") + kCatalogue);
  EXPECT_EQ(show.code, kExitOk) << show.out;
  EXPECT_THAT(show.out, HasSubstr("costs modelled (roofline), nothing was measured"));
  EXPECT_THAT(show.out, HasSubstr("generator 1"));
  const Result csv = Stowage(std::string("catalogue show vgg16 --format=csv") + kCatalogue);
  EXPECT_THAT(csv.out, testing::StartsWith("peak_bytes,share,makespan_ns,overhead\n"));
  const Result none = Stowage(std::string("catalogue show resnet50 --batch=63") + kCatalogue, true);
  EXPECT_EQ(none.code, kExitFailure);
  EXPECT_THAT(none.out, HasSubstr("`stowage catalogue ls` lists what it has"));
  const Result nowhere = Stowage("catalogue ls --catalogue=none", true);
  EXPECT_EQ(nowhere.code, kExitUsage);
  EXPECT_THAT(nowhere.out, HasSubstr("--catalogue = \"none\": must name a folder"));
  EXPECT_THAT(nowhere.out, HasSubstr("the sources have solvers/zoo/data"));
  const Result decoder =
      Stowage(std::string("catalogue show gpt2 --batch=4 --length=2048") + kCatalogue);
  EXPECT_EQ(decoder.code, kExitOk) << decoder.out;
  EXPECT_THAT(decoder.out, HasSubstr("gpt2, length 2048, batch 4, on a100"));
  const Result short_one =
      Stowage(std::string("catalogue show gpt2 --batch=4 --length=99") + kCatalogue, true);
  EXPECT_THAT(short_one.out, HasSubstr("no gpt2 with --length=99 --batch=4"));
}

TEST(Catalogue, HasCellNetworksOpByOp) {
  const std::string command =
      std::string(" nasnet_a --graph --image_size=32 --classes=10 --batch=64") + kCatalogue;
  const Result show = Stowage("catalogue show" + command);
  ASSERT_EQ(show.code, kExitOk) << show.out;
  EXPECT_THAT(show.out, HasSubstr("image 32, batch 64, 10 classes, op by op, on a100"));
  const Result exported = Stowage("catalogue export" + command + " --budget=60%");
  ASSERT_EQ(exported.code, kExitOk) << exported.out;
  v1::Plan message;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(exported.out, &message).ok());
  const absl::StatusOr<Plan> plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Graph graph =
      *ProfiledGraphOf(*MakeNetwork({"nasnet_a", 32, 64, 10}), FindDeviceKind("a100")->model);
  EXPECT_EQ(Evaluator(Problem(graph)).Run(plan->schedule)->peak, plan->prediction.peak);
  EXPECT_FALSE(plan->bounds.proven_optimal);
  EXPECT_EQ(plan->stage_vertices.size(), static_cast<size_t>(graph.size()));
  EXPECT_EQ(Stowage("catalogue show nasnet_a --batch=64" + std::string(kCatalogue)).code,
            kExitFailure);
}

TEST(Catalogue, ExportsAPlanThatTheEvaluatorAccepts) {
  const Result exported =
      Stowage(std::string("catalogue export resnet50 --budget=60% --batch=64") + kCatalogue);
  ASSERT_EQ(exported.code, kExitOk) << exported.out;
  v1::Plan message;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(exported.out, &message).ok());
  const absl::StatusOr<Plan> plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Chain chain = *NetworkChain({"resnet50", 224, 64, 1000}, FindDeviceKind("a100")->model);
  EXPECT_EQ(Evaluator(Problem(chain)).Run(plan->schedule)->makespan, plan->prediction.makespan);
  EXPECT_LE(plan->prediction.peak, plan->budget);
  const Result too_little =
      Stowage(std::string("catalogue export resnet50 --budget=1MiB --batch=64") + kCatalogue);
  EXPECT_EQ(too_little.code, kExitInfeasible);
}

TEST(Catalogue, MakesWhatIsShipped) {
  const TemporaryFolder folder;
  const std::string data = folder / "made/data";
  const Result made = Stowage("catalogue make resnet18 --out=" + data);
  ASSERT_EQ(made.code, kExitOk) << made.out;
  const auto read = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(read(data + "/resnet18.catalogue"),
            read(STOWAGE_SOURCE_DIR "/solvers/zoo/data/resnet18.catalogue"));
  EXPECT_EQ(Stowage("catalogue make skynet --out=" + (folder / "skynet")).code, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(folder / "skynet"));
  const std::string file = data + "/resnet18.catalogue";
  const Result taken = Stowage("catalogue make resnet18 --out=" + file, true);
  EXPECT_EQ(taken.code, kExitUsage);
  EXPECT_THAT(taken.out, HasSubstr("--out"));
  EXPECT_EQ(Stowage("catalogue make").code, kExitUsage);
}

TEST(Catalogue, WritesTheLineOfAnEnvironment) {
  const Result line = Stowage("catalogue environment --tenant=vision --device=h100 --profile=" +
                              Data("profile_chain.json"));
  EXPECT_EQ(line.code, kExitOk) << line.out;
  EXPECT_THAT(line.out, testing::StartsWith("kind=h100 tenant=\"vision\" device=\""));
  EXPECT_THAT(line.out, HasSubstr(" granularity="));
}

}  // namespace
}  // namespace stowage
