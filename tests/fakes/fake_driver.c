/* A stand-in for libamdhip64 (with hipRTC), or with -DCUDA for libcuda, libnvrtc and libnvidia-ml:
 * the functions that the probe calls, by the prototypes of the vendors' headers. Device memory is
 * the process's own; the first small launches of a kernel are run as the C that they also are, and
 * a clock that only work moves says how long all took. fake_script.h: what can be made to go wrong.
 */
#include "tests/fakes/fake_script.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "probe/kernels/kernel_all.h"

#ifdef CUDA
#define NAME(hip, cuda) cuda
#else
#define NAME(hip, cuda) hip
#endif
#define API(result, hip, cuda, parameters)                                                         \
    result NAME(hip, cuda) parameters;                                                             \
    result NAME(hip, cuda) parameters
#define TROUBLE                                                                                    \
    do {                                                                                           \
        int error_ = script_trouble(__func__);                                                     \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, NO_BINARY = 209, NOT_FOUND = 500 };

static double now_us;
static bool capturing;

void fake_pass(double us); /* for the libraries beside this one */
void fake_pass(double us) { now_us += capturing ? 0 : us; }

/* ---- devices ---- */

static bool is_device(int device) { return device >= 0 && device < script_number("devices", 1); }

API(int, hipInit, cuInit, (unsigned flags)) {
    (void)flags;
    TROUBLE;
    /* as libamdhip64 5.2.3 does it without a device; libcuda says 100 */
    return script_number("devices", 1) > 0 ? 0 : NAME(INVALID_DEVICE, NO_DEVICE);
}

API(int, hipGetDeviceCount, cuDeviceGetCount, (int *count)) {
    TROUBLE;
    *count = (int)script_number("devices", 1);
    return *count ? 0 : NO_DEVICE;
}

API(int, hipDeviceGetName, cuDeviceGetName, (char *name, int size, int device)) {
    TROUBLE;
    snprintf(name, (size_t)size, NAME("AMD Instinct Fake", "NVIDIA Fake"));
    return is_device(device) ? 0 : INVALID_DEVICE;
}

API(int, hipDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *text, int size, int device)) {
    TROUBLE;
    snprintf(text, (size_t)size, "0000:c%d:00.0", device + 1);
    return 0;
}

API(int, hipDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, int device)) {
    (void)device;
    TROUBLE;
    *bytes = (size_t)script_number("memory", 8589934592.0);
    return 0;
}

API(int, hipDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, int device)) {
    static const int UNITS = NAME(63, 16), CLOCK = NAME(5, 13), MAJOR = 75, MINOR = 76;
    int capability = atoi(script_word("arch", "90"));
    (void)device;
    TROUBLE;
    if (attribute == UNITS)
        *value = 304;
    else if (attribute == CLOCK)
        *value = 2100000;
    else if (NAME(false, true) && attribute == MAJOR)
        *value = capability / 10;
    else if (NAME(false, true) && attribute == MINOR)
        *value = capability % 10;
    else
        return 1;
    return 0;
}

API(int, hipDriverGetVersion, cuDriverGetVersion, (int *version)) {
    TROUBLE;
    *version = NAME(70051831, 12080);
    return 0;
}

#ifndef CUDA

API(int, hipRuntimeGetVersion, _, (int *version)) {
    TROUBLE;
    *version = 70051831;
    return 0;
}

/* The structure of ROCm 6 and later is 1472 bytes, the name of the architecture at 1160. */
API(int, hipGetDevicePropertiesR0600, _, (void *properties, int device)) {
    TROUBLE;
    memset(properties, 0, 1472);
    snprintf((char *)properties + 1160, 256, "%s", script_word("arch", "gfx942:sramecc+:xnack-"));
    return is_device(device) ? 0 : INVALID_DEVICE;
}

/* The one of ROCm 5: 792 bytes, at 396. */
API(int, hipGetDeviceProperties, _, (void *properties, int device)) {
    TROUBLE;
    memset(properties, 0, 792);
    snprintf((char *)properties + 396, 256, "%s", script_word("arch", "gfx942:sramecc+:xnack-"));
    return is_device(device) ? 0 : INVALID_DEVICE;
}

API(const char *, hipGetErrorName, _, (int code)) {
    return code == OUT_OF_MEMORY ? "hipErrorOutOfMemory" : "hipErrorFake";
}

API(int, hipSetDevice, _, (int device)) {
    TROUBLE;
    return is_device(device) ? 0 : INVALID_DEVICE;
}

API(int, hipExtGetLinkTypeAndHopCount, _, (int device, int peer, uint32_t *type, uint32_t *hops)) {
    (void)device, (void)peer;
    TROUBLE;
    *type = 4;
    *hops = 1;
    return 0;
}

#else

API(int, _, cuDeviceGet, (int *device, int index)) {
    TROUBLE;
    *device = index;
    return is_device(index) ? 0 : INVALID_DEVICE;
}

API(int, _, cuGetErrorName, (int code, const char **name)) {
    *name = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
    return 0;
}

API(int, _, cuDevicePrimaryCtxRetain, (void **context, int device)) {
    TROUBLE;
    *context = &now_us;
    return is_device(device) ? 0 : INVALID_DEVICE;
}

API(int, _, cuCtxSetCurrent, (void *context)) {
    TROUBLE;
    return context ? 0 : 1;
}

/* libnvidia-ml */
API(int, _, nvmlInit_v2, (void)) {
    TROUBLE;
    return 0;
}

API(int, _, nvmlDeviceGetHandleByPciBusId_v2, (const char *id, void **handle)) {
    TROUBLE;
    *handle = &now_us;
    return strcmp(id, "0000:c1:00.0") == 0 ? 0 : 6;
}

API(int, _, nvmlDeviceGetMemoryInfo, (void *handle, unsigned long long out[3])) {
    (void)handle;
    TROUBLE;
    out[0] = (unsigned long long)script_number("memory", 8589934592.0);
    out[1] = out[0] - (500ULL << 20);
    out[2] = 500ULL << 20;
    return 0;
}

API(int, _, nvmlDeviceGetClockInfo, (void *handle, int kind, unsigned *mhz)) {
    (void)handle;
    TROUBLE;
    *mhz = kind == 1 ? 1755 : 0;
    return 0;
}

API(int, _, nvmlDeviceGetPowerUsage, (void *handle, unsigned *mw)) {
    (void)handle;
    TROUBLE;
    *mw = 512000;
    return 0;
}

API(int, _, nvmlDeviceGetEnforcedPowerLimit, (void *handle, unsigned *mw)) {
    (void)handle;
    TROUBLE;
    *mw = 700000;
    return 0;
}

#endif

/* ---- memory ---- */

enum { GRANULE = 2 << 20, MOST_BLOCKS = 16384, COPY_MOST = 1 << 20, CONTEXT_BYTES = 300 << 20 };

static struct {
    void *at;
    size_t bytes;
} block[MOST_BLOCKS];
static size_t taken = CONTEXT_BYTES;

static int take(void **out, size_t bytes) {
    size_t whole = (bytes + GRANULE - 1) / GRANULE * GRANULE, i = 0;

    if (taken + whole > script_number("memory", 8589934592.0))
        return OUT_OF_MEMORY;
    while (i < MOST_BLOCKS && block[i].at)
        i++;
    void *at = i < MOST_BLOCKS ? mmap(NULL, whole, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                               : MAP_FAILED;
    if (at == MAP_FAILED)
        return OUT_OF_MEMORY;
    block[i].at = *out = at;
    block[i].bytes = whole;
    taken += whole;
    return 0;
}

static int give(void *memory) {
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (block[i].at == memory) {
            munmap(memory, block[i].bytes);
            taken -= block[i].bytes;
            block[i].at = NULL;
            return 0;
        }
    return 1;
}

API(int, hipMemGetInfo, cuMemGetInfo_v2, (size_t * left, size_t *total)) {
    TROUBLE;
    *total = (size_t)script_number("memory", 8589934592.0);
    *left = *total > taken ? *total - taken : 0;
    return 0;
}

API(int, hipMalloc, cuMemAlloc_v2, (void **out, size_t bytes)) {
    TROUBLE;
    return take(out, bytes);
}

API(int, hipFree, cuMemFree_v2, (void *memory)) {
    TROUBLE;
    return give(memory);
}

API(int, hipHostMalloc, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags)) {
    (void)flags;
    TROUBLE;
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    return *out == MAP_FAILED ? OUT_OF_MEMORY : 0;
}

API(int, hipHostFree, cuMemFreeHost, (void *memory)) {
    TROUBLE;
    return memory ? 0 : 1; /* its size is not kept */
}

/* Large copies only take their time. */
static int copy(void *to, const void *from, size_t bytes, double gbps) {
    memmove(to, from, bytes < COPY_MOST ? bytes : COPY_MOST);
    fake_pass(2 + (double)bytes / (gbps * 1e3));
    return 0;
}

API(int, hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,
    (void *to, const void *from, size_t bytes, void *stream)) {
    TROUBLE;
    return stream ? copy(to, from, bytes, 50) : 1;
}

API(int, hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,
    (void *to, const void *from, size_t bytes, void *stream)) {
    TROUBLE;
    return stream ? copy(to, from, bytes, 50) : 1;
}

API(int, hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,
    (void *to, const void *from, size_t bytes, void *stream)) {
    TROUBLE;
    return stream ? copy(to, from, bytes, 1500) : 1;
}

/* ---- streams, events, graphs ---- */

static int stream, graph;
static double event_us[64];
static unsigned events;

API(int, hipStreamCreateWithFlags, cuStreamCreate, (void **out, unsigned flags)) {
    (void)flags;
    TROUBLE;
    *out = &stream;
    return 0;
}

API(int, hipStreamDestroy, cuStreamDestroy_v2, (void *s)) {
    TROUBLE;
    return s ? 0 : 1;
}

API(int, hipStreamSynchronize, cuStreamSynchronize, (void *s)) {
    TROUBLE;
    fake_pass(1);
    return s ? 0 : 1;
}

API(int, hipEventCreateWithFlags, cuEventCreate, (void **out, unsigned flags)) {
    (void)flags;
    TROUBLE;
    *out = &event_us[events++ % 64];
    return 0;
}

API(int, hipEventRecord, cuEventRecord, (void *event, void *s)) {
    TROUBLE;
    *(double *)event = now_us;
    return s ? 0 : 1;
}

API(int, hipEventSynchronize, cuEventSynchronize, (void *event)) {
    TROUBLE;
    return event ? 0 : 1;
}

API(int, hipEventElapsedTime, cuEventElapsedTime, (float *ms, void *start, void *stop)) {
    TROUBLE;
    *ms = (float)((*(double *)stop - *(double *)start) / 1e3);
    return 0;
}

API(int, hipStreamBeginCapture, cuStreamBeginCapture_v2, (void *s, int mode)) {
    (void)s, (void)mode;
    TROUBLE;
    capturing = true;
    return 0;
}

API(int, hipStreamEndCapture, cuStreamEndCapture, (void *s, void **out)) {
    (void)s;
    capturing = false; /* also when it fails */
    TROUBLE;
    *out = &graph;
    return 0;
}

API(int, hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
    (void **out, void *g, unsigned long long flags)) {
    (void)flags;
    TROUBLE;
    *out = g;
    return take(&(void *){NULL}, GRANULE);
}

API(int, hipGraphLaunch, cuGraphLaunch, (void *g, void *s)) {
    TROUBLE;
    fake_pass(10);
    return g && s ? 0 : 1;
}

API(int, hipGraphExecDestroy, cuGraphExecDestroy, (void *g)) {
    TROUBLE;
    return g ? 0 : 1;
}

API(int, hipGraphDestroy, cuGraphDestroy, (void *g)) {
    TROUBLE;
    return g ? 0 : 1;
}

/* ---- kernels ---- */

static struct kernel {
    const char *name;
    void (*run)(void *, void *, void *, void *, void *, struct vp_numbers);
    unsigned runs; /* so far */
} KERNELS[] = {
#define X(name) {#name, name, 0},
#include "probe/kernel_entries.def"
#undef X
};

/* Processors in the flags of an AMD GPU's ELF file (EF_AMDGPU_MACH). */
static const struct {
    const char *name;
    uint8_t mach;
} MACHS[] = {{"gfx90a", 0x3f},  {"gfx942", 0x4c},  {"gfx950", 0x4f},
             {"gfx1100", 0x41}, {"gfx1151", 0x4a}, {"gfx1201", 0x4e}};

static uint8_t mach_of(const char *arch) {
    size_t n = strcspn(arch, ":");
    for (size_t i = 0; i < sizeof MACHS / sizeof *MACHS; i++)
        if (strlen(MACHS[i].name) == n && !strncmp(MACHS[i].name, arch, n))
            return MACHS[i].mach;
    return 0;
}

API(int, hipModuleLoadData, cuModuleLoadData, (void **module, const void *image)) {
    enum { FLAGS = 48 };
    const uint8_t *byte = image;
    TROUBLE;
    if (memcmp(byte, "\177ELF", 4) != 0)
        return 200;
    if (NAME(true, false) && byte[FLAGS] != mach_of(script_word("arch", "gfx942")))
        return NO_BINARY;
    *module = &stream;
    return 0;
}

API(int, hipModuleGetFunction, cuModuleGetFunction, (void **out, void *module, const char *name)) {
    (void)module;
    TROUBLE;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (!strcmp(KERNELS[i].name, name)) {
            *out = (void *)&KERNELS[i];
            return 0;
        }
    return NOT_FOUND;
}

/* Multiplications, roughly. */
static double amount_of(const struct vp_numbers *p) {
    const vp_u32 FACTOR[] = {p->m, p->n, p->k, p->heads, p->head_dim};
    double amount = 1;
    for (size_t i = 0; i < sizeof FACTOR / sizeof *FACTOR; i++)
        amount *= FACTOR[i] ? FACTOR[i] : 1;
    return amount;
}

API(int, hipModuleLaunchKernel, cuLaunchKernel,
    (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
     unsigned shared, void *s, void **parameters, void **extra)) {
    static const double MOST = 1 << 23;
    static const unsigned MOST_RUNS = 3;
    struct kernel *kernel = function;
    struct vp_numbers p;
    void *b[5];
    TROUBLE;
    if (!gx || gy != 1 || gz != 1 || !bx || bx > 256 || by != 1 || bz != 1 || shared || extra || !s)
        return 1;
    memcpy(&p, parameters[5], sizeof p);
    for (unsigned i = 0; i < 5; i++)
        b[i] = *(void **)parameters[i];
    double amount = amount_of(&p);
    fake_pass(5 + amount / 50e6);
    if (capturing || amount > MOST || kernel->runs++ >= MOST_RUNS)
        return 0;
    vp_host_blocks = gx;
    for (vp_host_block = 0; vp_host_block < gx; vp_host_block++)
        kernel->run(b[0], b[1], b[2], b[3], b[4], p);
    if (script_number("wrong", 0) > 0 && p.k)
        ((vp_bf16 *)b[2])[7] ^= 0x4000;
    return 0;
}

/* ---- the compiler ---- */

/* A program is its options' architecture. */
static char compiled_for[64];
static const char LOG[] = "warning: unused\nkernels(1): error: no such GPU\n";

API(int, hiprtcCreateProgram, nvrtcCreateProgram,
    (void **program, const char *text, const char *name, int headers, const char *const *texts,
     const char *const *names)) {
    (void)name, (void)headers, (void)texts, (void)names;
    TROUBLE;
    *program = compiled_for;
    return strstr(text, "vp_gemm_fp8") ? 0 : 1;
}

API(int, hiprtcCompileProgram, nvrtcCompileProgram,
    (void *program, int count, const char *const *options)) {
    (void)program;
    TROUBLE;
    for (int i = 0; i < count; i++)
        if (!strncmp(options[i], "--offload-arch=", 15) ||
            !strncmp(options[i], "--gpu-architecture=", 19))
            snprintf(compiled_for, sizeof compiled_for, "%s", strchr(options[i], '=') + 1);
    return NAME(mach_of(compiled_for) ? 0 : 6, strncmp(compiled_for, "sm_", 3) ? 6 : 0);
}

API(int, hiprtcGetProgramLogSize, nvrtcGetProgramLogSize, (void *program, size_t *bytes)) {
    (void)program;
    TROUBLE;
    *bytes = sizeof LOG;
    return 0;
}

API(int, hiprtcGetProgramLog, nvrtcGetProgramLog, (void *program, char *log)) {
    (void)program;
    TROUBLE;
    memcpy(log, LOG, sizeof LOG);
    return 0;
}

enum { CODE_BYTES = 64 };

API(int, hiprtcGetCodeSize, nvrtcGetCUBINSize, (void *program, size_t *bytes)) {
    (void)program;
    TROUBLE;
    *bytes = CODE_BYTES;
    return 0;
}

API(int, hiprtcGetCode, nvrtcGetCUBIN, (void *program, char *code)) {
    (void)program;
    TROUBLE;
    memset(code, 0, CODE_BYTES);
    memcpy(code, "\177ELF", 4);
    code[48] = (char)mach_of(compiled_for);
    return 0;
}

API(int, hiprtcDestroyProgram, nvrtcDestroyProgram, (void **program)) {
    TROUBLE;
    *program = NULL;
    return 0;
}
