/* A stand-in for libhipblaslt, or with -DCUDA for libcublasLt: multiplies column-major matrices,
 * the first one transposed; only the first small ones of a type really. Linked with the stand-in
 * for the driver, whose clock it moves. */
#include "tests/fakes/fake_script.h"

#include <stdbool.h>
#include <stdint.h>

#include "probe/fp8.h"

#ifdef CUDA
#define NAME(hip, cuda) cuda
#else
#define NAME(hip, cuda) hip
#endif
#define API(hip, cuda, parameters)                                                                 \
    int NAME(hip, cuda) parameters;                                                                \
    int NAME(hip, cuda) parameters
#define TROUBLE                                                                                    \
    do {                                                                                           \
        int error_ = script_trouble(__func__);                                                     \
        if (error_)                                                                                \
            return error_;                                                                         \
    } while (0)

void fake_pass(double us);

enum { R_32F = 0, R_16BF = 14, R_E4M3 = 28, R_E4M3_FNUZ = 1000, NOT_SUPPORTED = 7 };

struct layout {
    int type;
    uint64_t rows, columns;
    int64_t pitch;
};

struct product {
    int32_t transpose;
    const float *scale[2];
};

static int handle;

API(hipblasLtCreate, cublasLtCreate, (void **out)) {
    TROUBLE;
    *out = &handle;
    return 0;
}

API(hipblasLtMatrixLayoutCreate, cublasLtMatrixLayoutCreate,
    (void **out, int type, uint64_t rows, uint64_t columns, int64_t pitch)) {
    struct layout *l = malloc(sizeof *l);
    TROUBLE;
    *l = (struct layout){type, rows, columns, pitch};
    *out = l;
    return 0;
}

API(hipblasLtMatmulDescCreate, cublasLtMatmulDescCreate,
    (void **out, int compute, int scale_type)) {
    TROUBLE;
    *out = calloc(1, sizeof(struct product));
    return compute == NAME(2, 68) && scale_type == R_32F ? 0 : 1;
}

API(hipblasLtMatmulDescSetAttribute, cublasLtMatmulDescSetAttribute,
    (void *desc, int attribute, const void *value, size_t bytes)) {
    struct product *p = desc;
    TROUBLE;
    if (attribute == NAME(0, 3) && bytes == sizeof p->transpose)
        memcpy(&p->transpose, value, bytes);
    else if ((attribute == NAME(5, 17) || attribute == NAME(6, 18)) && bytes == sizeof(float *))
        memcpy(&p->scale[attribute != NAME(5, 17)], value, bytes);
    else
        return 1;
    return 0;
}

API(hipblasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceCreate, (void **out)) {
    TROUBLE;
    *out = &handle;
    return 0;
}

API(hipblasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute,
    (void *wish, int attribute, const void *value, size_t bytes)) {
    (void)wish, (void)value;
    TROUBLE;
    return attribute == 1 && bytes == 8 ? 0 : 1;
}

static bool is_fp8(int type) { return type == NAME(R_E4M3_FNUZ, R_E4M3); }

/* Of an FP8 product, all sides but ours in n must be multiples of 16. */
API(hipblasLtMatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic,
    (void *h, void *desc, void *a, void *b, void *c, void *d, void *wish, int most, void *results,
     int *count)) {
    const struct layout *first = a;
    (void)h, (void)desc, (void)b, (void)c, (void)d, (void)wish, (void)most;
    TROUBLE;
    if (first->type != R_32F && first->type != R_16BF && !is_fp8(first->type))
        return NOT_SUPPORTED;
    if (is_fp8(first->type) && (first->rows % 16 || first->columns % 16))
        return NOT_SUPPORTED;
    memset(results, 0x5a, NAME(56, 96));
    *count = 1;
    return 0;
}

static float value_at(const struct layout *l, const void *data, uint64_t i) {
    if (l->type == R_32F)
        return ((const float *)data)[i];
    if (l->type == R_16BF)
        return vp_bf16_value(((const uint16_t *)data)[i]);
    return vp_fp8_value(((const uint8_t *)data)[i], l->type == R_E4M3_FNUZ);
}

API(hipblasLtMatmul, cublasLtMatmul,
    (void *h, void *desc, const void *alpha, const void *a, void *la, const void *b, void *lb,
     const void *beta, const void *c, void *lc, void *d, void *ld, const void *algorithm,
     void *workspace, size_t bytes, void *stream)) {
    static const double MOST = 1 << 23;
    static const unsigned MOST_RUNS = 2;
    static unsigned runs[3];
    const struct product *p = desc;
    const struct layout *first = la, *second = lb, *out = ld;
    double amount = (double)first->rows * (double)first->columns * (double)second->columns;
    TROUBLE;
    if (h != &handle || p->transpose != NAME(112, 1) || *(const float *)alpha != 1.0F ||
        *(const float *)beta != 0.0F || c != d || lc != ld || *(const char *)algorithm != 0x5a ||
        !workspace || !bytes || !stream || first->rows != second->rows ||
        out->rows != first->columns || out->columns != second->columns)
        return 1;
    fake_pass(5 + amount / 100e6);
    if (amount > MOST || runs[is_fp8(first->type) ? 2 : first->type == R_16BF]++ >= MOST_RUNS)
        return 0;
    float *x = malloc(first->rows * sizeof *x);
    float *y = malloc(first->rows * out->columns * sizeof *y);
    for (uint64_t j = 0; j < out->columns; j++)
        for (uint64_t k = 0; k < first->rows; k++)
            y[j * first->rows + k] = value_at(second, b, j * (uint64_t)second->pitch + k);
    float scale = script_number("wrong", 0) > 0 ? 1.5F : 1.0F;
    for (unsigned i = 0; i < 2; i++)
        scale *= p->scale[i] ? *p->scale[i] : 1.0F;
    for (uint64_t i = 0; i < out->rows; i++) {
        for (uint64_t k = 0; k < first->rows; k++)
            x[k] = value_at(first, a, i * (uint64_t)first->pitch + k);
        for (uint64_t j = 0; j < out->columns; j++) {
            float sum = 0;
            for (uint64_t k = 0; k < first->rows; k++)
                sum += x[k] * y[j * first->rows + k];
            uint64_t at = j * (uint64_t)out->pitch + i;
            if (out->type == R_32F)
                ((float *)d)[at] = sum * scale;
            else
                ((uint16_t *)d)[at] = vp_bf16_code(sum * scale);
        }
    }
    free(x);
    free(y);
    return 0;
}
