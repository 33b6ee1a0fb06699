/* A stand-in for RCCL and NCCL, which have the same names: takes time, adds up nothing. */
#include "tests/fakes/fake_script.h"

#define TROUBLE                                                                                    \
    do {                                                                                           \
        int error_ = script_trouble(__func__);                                                     \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)
#define API(result, name, parameters)                                                              \
    result name parameters;                                                                        \
    result name parameters

static int communicator;

API(int, ncclCommInitAll, (void **out, int count, const int *devices)) {
    TROUBLE;
    for (int i = 0; i < count; i++)
        out[i] = &communicator;
    return devices && count > 1 ? 0 : 4;
}

API(int, ncclCommDestroy, (void *c)) {
    TROUBLE;
    return c ? 0 : 4;
}

API(int, ncclGroupStart, (void)) {
    TROUBLE;
    return 0;
}

API(int, ncclGroupEnd, (void)) {
    TROUBLE;
    return 0;
}

API(int, ncclAllReduce,
    (const void *from, void *to, size_t count, int type, int operation, void *c, void *stream)) {
    TROUBLE;
    return from && to && count && type == 9 && operation == 0 && c && stream ? 0 : 4;
}

API(const char *, ncclGetErrorString, (int code)) {
    return code == 4 ? "invalid argument" : "unhandled system error";
}
