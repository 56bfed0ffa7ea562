// Holds includes and links against the layers: who may use whom is the table below, and nothing
// else.
//
// Includes are read from the sources, links from link_graph.txt, which CMake writes
// (cmake/StowageTargets.cmake).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A folder and what its files may include and its targets may link, apart from the standard library
// and Abseil. The longest matching prefix decides. Outside libraries are written in angle brackets.
struct Folder {
  std::string path;
  std::set<std::string> may_use;
};

// The torch part, which is one library in several folders, and these.
std::set<std::string> TorchAnd(std::set<std::string> others) {
  for (const char* folder : {"", "/base", "/memory", "/offload", "/model", "/execute", "/profile",
                             "/shapes", "/script", "/cuda"}) {
    others.insert(std::string("client/torch") + folder);
  }
  return others;
}

const std::vector<Folder>& Folders() {
  static const auto* const kFolders = new std::vector<Folder>{
      {"proto/codec", {"proto", "solvers/model", "solvers/schedule", "<protobuf>", "<grpc>"}},
      {"proto/otlp", {"proto", "solvers/base", "<protobuf>", "<grpc>"}},
      {"proto", {"<protobuf>", "<grpc>"}},
      {"solvers/base", {}},
      {"solvers/model", {"<openssl>"}},
      {"solvers/schedule", {"solvers/model"}},
      {"solvers/batch", {"solvers/model", "solvers/schedule"}},
      {"solvers/chain", {"solvers/base", "solvers/model", "solvers/schedule", "solvers"}},
      {"solvers/graph",
       {"solvers/base", "solvers/model", "solvers/schedule", "solvers/chain", "solvers"}},
      {"solvers/transfer",
       {"solvers/model", "solvers/schedule", "solvers/chain", "solvers/graph", "solvers"}},
      {"solvers/placement", {"solvers/model", "solvers/schedule", "solvers"}},
      {"solvers/pipeline",
       {"solvers/base", "solvers/chain", "solvers/model", "solvers/schedule", "solvers"}},
      {"solvers/viz", {"solvers/base", "solvers/model", "solvers/schedule", "solvers/graph"}},
      {"solvers/zoo", {"solvers/graph", "solvers/model", "solvers/schedule", "solvers"}},
      {"solvers",
       {"solvers/base", "solvers/model", "solvers/schedule", "solvers/chain", "solvers/graph",
        "solvers/transfer"}},
      // What is on top uses what is below, and nothing the other way round.
      {"server/observe", {"solvers/base", "solvers/model", "<prometheus>"}},
      {"server/entries", {"server/observe", "solvers", "solvers/model", "solvers/schedule"}},
      {"server/store",
       {"server/entries", "server/observe", "solvers/model", "solvers/schedule", "<hiredis>",
        "<openssl>", "<sqlite>"}},
      {"server/runtime", {"server/entries", "server/observe", "solvers/model"}},
      {"server/decisions",
       {"server/entries", "server/observe", "server/store", "solvers/base", "solvers/model",
        "solvers/schedule"}},
      {"server/catalogue",
       {"server/entries", "server/store", "solvers/model", "solvers/schedule", "solvers/zoo"}},
      {"server/service",
       {"server/entries", "server/observe", "server/runtime", "server/store", "solvers",
        "solvers/base", "solvers/batch", "solvers/model", "solvers/schedule"}},
      {"server/auth",
       {"proto/codec", "server/entries", "server/observe", "server/runtime", "solvers/model",
        "<grpc>", "<openssl>"}},
      {"server/rpc",
       {"proto", "proto/codec", "server/auth", "server/decisions", "server/entries",
        "server/observe", "server/runtime", "server/service", "solvers", "solvers/base",
        "solvers/batch", "solvers/model", "solvers/schedule", "<grpc>", "<protobuf>"}},
      {"server/config",
       {"proto/otlp", "server/auth", "server/catalogue", "server/decisions", "server/entries",
        "server/observe", "server/rpc", "server/service", "server/store", "solvers/base",
        "solvers/model", "solvers/zoo"}},
      {"server",
       {"proto/otlp", "server/auth", "server/catalogue", "server/config", "server/decisions",
        "server/observe", "server/rpc", "server/service", "server/store", "solvers", "solvers/base",
        "solvers/model"}},
      {"client/torch/base", {"<torch>"}},
      {"client/torch/memory",
       {"client/torch/base", "solvers/model", "solvers/placement", "solvers/schedule", "<torch>"}},
      {"client/torch/offload",
       {"client/torch/base", "client/torch/memory", "solvers/model", "solvers/schedule",
        "<torch>"}},
      {"client/torch/model",
       {"client/torch/base", "client/torch/offload", "solvers/model", "<torch>"}},
      {"client/torch/execute",
       {"client/torch/base", "client/torch/memory", "client/torch/offload", "client/torch/model",
        "solvers/model", "solvers/schedule", "<torch>"}},
      {"client/torch/profile",
       {"client/torch/base", "client/torch/memory", "client/torch/offload", "client/torch/model",
        "client/torch/execute", "solvers/model", "solvers/schedule", "<torch>"}},
      {"client/torch/shapes",
       {"client/torch/base", "client/torch/memory", "client/torch/offload", "client/torch/model",
        "client/torch/execute", "client/torch/profile", "solvers/model", "<torch>"}},
      {"client/torch/script",
       {"client/torch/base", "client/torch/model", "solvers/model", "<torch>"}},
      {"client/torch/cuda",
       {"client/torch/base", "client/torch/memory", "client/torch/model", "client/torch/offload",
        "solvers/model", "<torch>"}},
      // Its folders are one library.
      {"client/torch", {"solvers/model", "solvers/placement", "solvers/schedule", "<torch>"}},
      {"client/models", TorchAnd({"solvers/model", "solvers/zoo", "<torch>"})},
      {"client/rpc",
       {"proto", "proto/codec", "solvers", "solvers/base", "solvers/batch", "solvers/model",
        "solvers/schedule", "<grpc>", "<protobuf>", "<openssl>"}},
      // No protobuf: a second one in a process that has one of its own aborts it.
      {"client/python", TorchAnd({"solvers", "solvers/base", "solvers/model", "solvers/pipeline",
                                  "solvers/schedule", "solvers/viz", "<python>", "<torch>"})},
      {"client/probe", {"client/rpc", "solvers/base", "solvers/model"}},
      {"client/agent", TorchAnd({"client/rpc", "solvers", "solvers/base", "solvers/model",
                                 "solvers/schedule", "solvers/viz", "<torch>"})},
      {"client/cli",
       TorchAnd({"client/agent", "client/models", "client/rpc", "proto", "proto/codec",
                 "proto/otlp", "solvers", "solvers/base", "solvers/batch", "solvers/graph",
                 "solvers/model", "solvers/pipeline", "solvers/schedule", "solvers/viz",
                 "solvers/zoo", "<torch>"})},
  };
  return *kFolders;
}

const Folder* FolderOf(const std::string& path) {
  const Folder* best = nullptr;
  for (const Folder& folder : Folders()) {
    const bool inside = path == folder.path || path.rfind(folder.path + "/", 0) == 0;
    if (inside && (best == nullptr || folder.path.size() > best->path.size())) best = &folder;
  }
  return best;
}

// The library that an include of something outside the tree belongs to; "" for the standard
// library, the system and Abseil.
std::string LibraryOfInclude(const std::string& include) {
  static const std::pair<const char*, const char*> kPrefixes[] = {
      {"torch/", "<torch>"},
      {"ATen/", "<torch>"},
      {"c10/", "<torch>"},
      {"grpc/", "<grpc>"},
      {"grpcpp/", "<grpc>"},
      {"google/", "<protobuf>"},
      {"prometheus/", "<prometheus>"},
      {"openssl/", "<openssl>"},
      {"sqlite3", "<sqlite>"},
      {"hiredis", "<hiredis>"},
      {"pybind11/", "<python>"},
      {"gtest/", "<gtest>"},
      {"gmock/", "<gmock>"},
  };
  for (const auto& [prefix, library] : kPrefixes) {
    if (include.rfind(prefix, 0) == 0) return library;
  }
  return "";
}

std::string LibraryOfTarget(const std::string& target) {
  static const std::pair<const char*, const char*> kPrefixes[] = {
      {"gRPC::", "<grpc>"},
      {"protobuf::", "<protobuf>"},
      {"prometheus-cpp::", "<prometheus>"},
      {"stowage_libtorch", "<torch>"},
      {"OpenSSL::", "<openssl>"},
      {"SQLite::", "<sqlite>"},
      {"hiredis::", "<hiredis>"},
      {"pybind11::", "<python>"},
      {"absl::", ""},
      {"Threads::", ""},
  };
  for (const auto& [prefix, library] : kPrefixes) {
    if (target.rfind(prefix, 0) == 0) return library;
  }
  return "<unknown " + target + ">";
}

std::string RelativeTo(const fs::path& path, const fs::path& root) {
  return fs::relative(path, root).generic_string();
}

std::vector<fs::path> SourceFiles(const std::vector<std::string>& tops = {"proto", "solvers",
                                                                          "server", "client"}) {
  static const std::set<std::string> kEndings = {".h", ".cc", ".cu"};
  std::vector<fs::path> files;
  for (const std::string& top : tops) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(STOWAGE_SOURCE_DIR) / top)) {
      if (kEndings.count(entry.path().extension().string()) > 0) files.push_back(entry.path());
    }
  }
  return files;
}

std::vector<std::string> IncludesOf(const fs::path& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::ifstream in(file);
  std::vector<std::string> includes;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, match, kInclude)) includes.push_back(match[1]);
  }
  return includes;
}

// What an include crosses into; "" when it stays in its folder or belongs to everyone.
std::string IncludedFolder(const std::string& include) {
  for (const char* generated : {"stowage/v1/", "opentelemetry/"}) {
    if (include.rfind(generated, 0) == 0) return "proto";
  }
  const Folder* folder = FolderOf(include);
  return folder != nullptr ? folder->path : LibraryOfInclude(include);
}

TEST(Layers, IncludesStayWithinThem) {
  const std::vector<fs::path> files = SourceFiles();
  ASSERT_GT(files.size(), 20u);
  for (const fs::path& file : files) {
    const std::string name = RelativeTo(file, STOWAGE_SOURCE_DIR);
    const Folder* folder = FolderOf(name);
    ASSERT_NE(folder, nullptr) << name << " is in no folder of the layers' table";
    for (const std::string& include : IncludesOf(file)) {
      const std::string used = IncludedFolder(include);
      // A mock header is for tests of users.
      const bool mock = name.find("/mock_") != std::string::npos && used == "<gmock>";
      EXPECT_TRUE(used.empty() || used == folder->path || folder->may_use.count(used) > 0 || mock)
          << name << " includes " << include << ": " << folder->path << " may not use " << used;
    }
  }
}

// What is in a folder "internal" is for the folder around it and what lies in that.
// Two classes of one name in one namespace are one to the linker, which takes the destructor of either.
TEST(Layers, HeadersNameEveryClassOnce) {
  static const std::regex kClass(R"(^(?:class|struct) (\w+)(?: final)?(?: :.*| \{.*)$)");
  std::map<std::string, std::string> header_of;
  for (const fs::path& file : SourceFiles({"solvers", "server", "client", "tests"})) {
    if (file.extension() != ".h") continue;
    const std::string header = RelativeTo(file, STOWAGE_SOURCE_DIR);
    std::ifstream in(file);
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_match(line, match, kClass)) continue;
      const auto [known, is_new] = header_of.emplace(match[1], header);
      EXPECT_TRUE(is_new) << match[1] << " in " << known->second << " and in " << header;
    }
  }
  EXPECT_GT(header_of.size(), 300U);
}

TEST(Layers, InternalHeadersAreForTheirOwnFolder) {
  int internal = 0;
  for (const fs::path& file : SourceFiles()) {
    const std::string name = RelativeTo(file, STOWAGE_SOURCE_DIR);
    for (const std::string& include : IncludesOf(file)) {
      const size_t at = include.find("/internal/");
      if (at == std::string::npos || FolderOf(include) == nullptr) continue;
      ++internal;
      EXPECT_EQ(name.rfind(include.substr(0, at + 1), 0), 0u) << name << " includes " << include;
    }
  }
  EXPECT_GT(internal, 10);
}

std::set<std::string> UsersOf(const std::string& library) {
  std::set<std::string> users;
  for (const fs::path& file : SourceFiles()) {
    for (const std::string& include : IncludesOf(file)) {
      if (LibraryOfInclude(include) == library) users.insert(RelativeTo(file, STOWAGE_SOURCE_DIR));
    }
  }
  return users;
}

// One file hashes, one shakes hands to find out what is wrong, one looks into certificates, one talks to
// Redis.
TEST(Layers, FourFilesKnowTheCryptographyLibrary) {
  EXPECT_EQ(UsersOf("<openssl>"),
            (std::set<std::string>{"client/rpc/tls_probe.cc", "server/auth/certificate_check.cc",
                                   "server/store/redis_tls.cc", "solvers/model/digest.cc"}));
}

TEST(Layers, OneFileKnowsTheRedisLibrary) {
  EXPECT_EQ(UsersOf("<hiredis>"), std::set<std::string>{"server/store/redis_connection.cc"});
}

TEST(Layers, LinksStayWithinThem) {
  std::ifstream in(fs::path(STOWAGE_BINARY_DIR) / "link_graph.txt");
  std::map<std::string, std::string> folder_of_target;
  std::vector<std::pair<std::string, std::string>> links;
  for (std::string folder, target, dep; in >> folder >> target >> dep;) {
    folder_of_target[target] = folder;
    if (dep != "-") links.push_back({target, dep});
  }
  ASSERT_GT(links.size(), 10u) << "link_graph.txt is missing or empty";
  for (const auto& [target, dep] : links) {
    const std::string& directory = folder_of_target[target];
    const Folder* folder = FolderOf(directory);
    if (folder == nullptr) continue;  // tests may use everything
    const auto found = folder_of_target.find(dep);
    const Folder* used_folder = found != folder_of_target.end() ? FolderOf(found->second) : nullptr;
    const std::string used = used_folder != nullptr ? used_folder->path : LibraryOfTarget(dep);
    EXPECT_TRUE(used.empty() || used == folder->path || folder->may_use.count(used) > 0)
        << target << " links " << dep << ": " << folder->path << " may not use " << used;
  }
}

}  // namespace
