#include "tests/server/store/power_cut.h"

#include <sqlite3.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

namespace stowage::testing {
namespace {

constexpr char kName[] = "stowage_power_cut";

PowerCut* g_cut = nullptr;
sqlite3_vfs* g_real = nullptr;

// In front of the real one, which lies behind it in one piece of memory.
struct CutFile {
  sqlite3_file base;
  std::string* path;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

CutFile* Cut(sqlite3_file* file) { return reinterpret_cast<CutFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Cut(file)->real(); }
const sqlite3_io_methods* Methods(sqlite3_file* file) { return Real(file)->pMethods; }

int Close(sqlite3_file* file) {
  delete Cut(file)->path;
  return Methods(file)->xClose(Real(file));
}
int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  return Methods(file)->xRead(Real(file), to, size, at);
}
int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  if (!g_cut->Operate()) return SQLITE_IOERR_WRITE;
  return Methods(file)->xWrite(Real(file), from, size, at);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (!g_cut->Operate()) return SQLITE_IOERR_TRUNCATE;
  return Methods(file)->xTruncate(Real(file), size);
}
int Sync(sqlite3_file* file, int flags) {
  if (!g_cut->Operate()) return SQLITE_IOERR_FSYNC;
  const int code = Methods(file)->xSync(Real(file), flags);
  if (code == SQLITE_OK) g_cut->Synced(*Cut(file)->path);
  return code;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Methods(file)->xFileSize(Real(file), size);
}
int Lock(sqlite3_file* file, int kind) { return Methods(file)->xLock(Real(file), kind); }
int Unlock(sqlite3_file* file, int kind) { return Methods(file)->xUnlock(Real(file), kind); }
int CheckReserved(sqlite3_file* file, int* reserved) {
  return Methods(file)->xCheckReservedLock(Real(file), reserved);
}
int Control(sqlite3_file* file, int what, void* argument) {
  return Methods(file)->xFileControl(Real(file), what, argument);
}
int SectorSize(sqlite3_file* file) { return Methods(file)->xSectorSize(Real(file)); }
// Nothing that would let SQLite leave out a sync.
int Characteristics(sqlite3_file*) { return 0; }
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return Methods(file)->xShmMap(Real(file), page, size, extend, memory);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Methods(file)->xShmLock(Real(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Methods(file)->xShmBarrier(Real(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Methods(file)->xShmUnmap(Real(file), remove);
}

const sqlite3_io_methods kMethods = {
    2,        Close,         Read,    Write,      Truncate,        Sync,   FileSize, Lock,
    Unlock,   CheckReserved, Control, SectorSize, Characteristics, ShmMap, ShmLock,  ShmBarrier,
    ShmUnmap, nullptr,       nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* opened) {
  CutFile* const cut = Cut(file);
  std::memset(cut, 0, sizeof(*cut));
  const int code = g_real->xOpen(g_real, name, cut->real(), flags, opened);
  if (cut->real()->pMethods == nullptr) return code;
  cut->path = new std::string(name != nullptr ? name : "");
  cut->base.pMethods = &kMethods;
  return code;
}

int Delete(sqlite3_vfs*, const char* name, int sync_folder) {
  if (!g_cut->Operate()) return SQLITE_IOERR_DELETE;
  const int code = g_real->xDelete(g_real, name, sync_folder);
  if (code == SQLITE_OK && sync_folder != 0) g_cut->Deleted(name);
  return code;
}

sqlite3_vfs* CutVfs() {
  static sqlite3_vfs vfs = *g_real;
  vfs.zName = kName;
  vfs.szOsFile = g_real->szOsFile + static_cast<int>(sizeof(CutFile));
  vfs.pNext = nullptr;
  vfs.xOpen = Open;
  vfs.xDelete = Delete;
  return &vfs;
}

}  // namespace

PowerCut::PowerCut() {
  if (g_cut != nullptr) std::abort();
  g_real = sqlite3_vfs_find(nullptr);
  g_cut = this;
  if (sqlite3_vfs_register(CutVfs(), 1) != SQLITE_OK) std::abort();
}

PowerCut::~PowerCut() {
  sqlite3_vfs_unregister(CutVfs());
  sqlite3_vfs_register(g_real, 1);
  g_cut = nullptr;
}

void PowerCut::After(int64_t operations) {
  std::lock_guard<std::mutex> lock(mutex_);
  last_ = operations_ + operations;
}

bool PowerCut::is_off() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return operations_ > last_;
}

int64_t PowerCut::operations() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return operations_;
}

bool PowerCut::Operate() {
  std::lock_guard<std::mutex> lock(mutex_);
  return ++operations_ <= last_;
}

void PowerCut::Synced(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  std::lock_guard<std::mutex> lock(mutex_);
  synced_[path] = std::move(bytes);
}

void PowerCut::Deleted(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  synced_.erase(path);
}

void PowerCut::Recover(const std::string& folder, const std::string& other) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [path, bytes] : synced_) {
    if (path.rfind(folder + "/", 0) != 0) continue;
    std::ofstream(other + path.substr(folder.size()), std::ios::binary | std::ios::trunc) << bytes;
  }
}

}  // namespace stowage::testing
