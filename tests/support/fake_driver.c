/* What guest/device_memory.py asks of NVIDIA's driver, on a machine without one: a device's memory is a
   file in memory, and a handle its descriptor. With CUDA's headers, the layouts are held against
   theirs. Each wrong argument is CUDA_ERROR_INVALID_VALUE. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { int type, id; } Location;
typedef struct {
    int type, handles;
    Location location;
    void* win32;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
} Properties;
typedef struct { Location location; int flags; } Access;

#ifdef WITH_CUDA
#include <cuda.h>
#define SAME(ours, mine, theirs, field) \
    _Static_assert(offsetof(ours, mine) == offsetof(theirs, field), #field)
SAME(Properties, handles, CUmemAllocationProp, requestedHandleTypes);
SAME(Properties, location, CUmemAllocationProp, location);
SAME(Properties, win32, CUmemAllocationProp, win32HandleMetaData);
SAME(Properties, usage, CUmemAllocationProp, allocFlags.usage);
_Static_assert(sizeof(Properties) == sizeof(CUmemAllocationProp), "properties");
SAME(Access, flags, CUmemAccessDesc, flags);
_Static_assert(sizeof(Access) == sizeof(CUmemAccessDesc), "access");
_Static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_LOCATION_TYPE_DEVICE == 1, "");
_Static_assert(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == 1, "");
_Static_assert(CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3 && CUDA_ERROR_OUT_OF_MEMORY == 2, "");
#else
enum { GRAIN = 2 << 20, MOST = 64 << 20 };

static int good(const Properties* p) {
    return p->type == 1 && p->handles == 1 && p->location.type == 1 && p->location.id == 3 &&
           !p->win32 && !p->compression && !p->rdma && !p->usage;
}
int cuMemGetAllocationGranularity(size_t* grain, const Properties* p, int option) {
    *grain = GRAIN;
    return !good(p) || option;
}
int cuMemCreate(uint64_t* handle, size_t size, const Properties* p, unsigned long long flags) {
    if (!good(p) || flags || size % GRAIN) return 1;
    if (size > MOST) return 2;
    *handle = memfd_create("device", 0);
    return ftruncate(*handle, size);
}
int cuMemAddressReserve(uint64_t* at, size_t size, size_t align, uint64_t where, uint64_t flags) {
    *at = (uint64_t)mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return size % GRAIN || align || where || flags;
}
int cuMemMap(uint64_t at, size_t size, size_t offset, uint64_t handle, uint64_t flags) {
    void* made = mmap((void*)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, handle, offset);
    return made == MAP_FAILED || flags;
}
int cuMemSetAccess(uint64_t at, size_t size, const Access* a, size_t count) {
    if (count != 1 || a->location.type != 1 || a->location.id != 3 || a->flags != 3) return 1;
    return mprotect((void*)at, size, PROT_READ | PROT_WRITE);
}
int cuMemExportToShareableHandle(void* out, uint64_t handle, int type, uint64_t flags) {
    *(int*)out = dup(handle);
    return type != 1 || flags;
}
int cuMemImportFromShareableHandle(uint64_t* handle, void* file, int type) {
    int copy = dup((int)(uintptr_t)file);
    *handle = copy;
    return copy < 0 || type != 1;
}
int cuMemUnmap(uint64_t at, size_t size) { return munmap((void*)at, size); }
int cuMemAddressFree(uint64_t at, size_t size) { return at % 4096 || size % GRAIN; }
int cuMemRelease(uint64_t handle) { return close(handle); }
int cuGetErrorName(int error, const char** name) {
    *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}
#endif
