/* The matrix units, one family each: how a 16-row piece of an operand lies in the lanes of a wave,
 * and the instruction that multiplies two of them. A family defines
 *
 * - VP_WAVE: lanes that work together;
 * - VP_STEP_BYTES: bytes of a row that one fragment covers; a lane has 32 bytes of it;
 * - VP_PIECES: rows that those 32 bytes come from, 1 or 2;
 * - VP_A_ROW, VP_B_ROW, VP_PIECE_BYTE: which rows of an operand, from which byte on;
 * - VP_RUNS, VP_RUN: a lane has so many runs of so many neighbouring columns of a 16 x 16 result;
 * - VP_OUT_ROW, VP_OUT_COLUMN: where a run starts;
 * - vp_mma_bf16: acc += a b^T, 16-bit operands; vp_mma_fp8: the same for FP8, where VP_FP8_UNITS.
 *
 * Operand b is the weight, [n, k]. Both lie along k, so the order of k within a fragment cancels
 * out and every lane may load neighbouring bytes. The order of rows of b is chosen so that results
 * of a lane are neighbours.
 *
 * Lanes of results of the instructions, for lane l and float i: MFMA 16x16: column l % 16, row
 * 4 (l / 16) + i. WMMA of gfx11: row 2 i + l / 16; of gfx12: row 8 (l / 16) + i. PTX mma m16n8:
 * rows l / 4 and + 8, columns 2 (l % 4) and + 1. (AMD's matrix instruction calculator; PTX ISA,
 * "Matrix fragments".) AMD's get b as their first operand, so that their rows are our columns.
 * A back end multiplies one small matrix and compares before it believes any of them. */

#if defined(__AMDGCN__) && !defined(__OPENCL_VERSION__)
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) ||    \
    defined(__gfx950__)
#define VP_FAMILY_MFMA
#elif defined(__GFX11__)
#define VP_FAMILY_WMMA11
#elif defined(__GFX12__)
#define VP_FAMILY_WMMA12
#else
#define VP_FAMILY_NONE
#endif
#elif defined(__CUDACC__)
#if __CUDA_ARCH__ >= 800 /* before, there are no units for bf16 */
#define VP_FAMILY_PTX
#else
#define VP_FAMILY_NONE
#endif
#else
#define VP_FAMILY_SCALAR
#endif

#if defined(VP_FAMILY_MFMA) || defined(VP_FAMILY_WMMA11) || defined(VP_FAMILY_WMMA12)
typedef float vp_f32x4 __attribute__((ext_vector_type(4)));
typedef float vp_f32x8 __attribute__((ext_vector_type(8)));
typedef short vp_i16x4 __attribute__((ext_vector_type(4)));
typedef short vp_i16x8 __attribute__((ext_vector_type(8)));
typedef short vp_i16x16 __attribute__((ext_vector_type(16)));
typedef int vp_i32x2 __attribute__((ext_vector_type(2)));
typedef int vp_i32x8 __attribute__((ext_vector_type(8)));
#if defined(__gfx950__)
typedef __bf16 vp_bf16x8 __attribute__((ext_vector_type(8)));
#endif
#endif

/* A fragment: 32 bytes of a lane, seen as an instruction wants them. */
union vp_fragment {
    struct vp_word word[2];
    vp_u32 u[8];
#if defined(VP_FAMILY_MFMA)
    vp_i16x4 bf16x4[4];
    long fp8x8[4];
    vp_i32x8 fp8x32;
#if defined(__gfx950__)
    vp_bf16x8 bf16x8[2];
#endif
#elif defined(VP_FAMILY_WMMA11)
    vp_i16x16 bf16x16;
#elif defined(VP_FAMILY_WMMA12)
    vp_i16x8 bf16x8[2];
    vp_i32x2 fp8x8[4];
#endif
};

#if defined(VP_FAMILY_MFMA)

#define VP_WAVE 64
#define VP_STEP_BYTES 128
#define VP_PIECES 1
#define VP_A_ROW(lane, p) ((lane) % 16)
#define VP_B_ROW(lane, p) ((lane) % 16)
#define VP_PIECE_BYTE(lane) ((lane) / 16 * 32)
#define VP_RUNS 1
#define VP_RUN 4
#define VP_OUT_ROW(lane, r) ((lane) % 16)
#define VP_OUT_COLUMN(lane, r) ((lane) / 16 * 4)
typedef vp_f32x4 vp_acc;

VP_FN vp_acc vp_mma_bf16(union vp_fragment a, union vp_fragment b, vp_acc acc) {
#if defined(__gfx950__)
    acc = __builtin_amdgcn_mfma_f32_16x16x32_bf16(b.bf16x8[0], a.bf16x8[0], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_bf16(b.bf16x8[1], a.bf16x8[1], acc, 0, 0, 0);
#else
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(b.bf16x4[0], a.bf16x4[0], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(b.bf16x4[1], a.bf16x4[1], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(b.bf16x4[2], a.bf16x4[2], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(b.bf16x4[3], a.bf16x4[3], acc, 0, 0, 0);
#endif
    return acc;
}

#if VP_FP8_UNITS
VP_FN vp_acc vp_mma_fp8(union vp_fragment a, union vp_fragment b, vp_acc acc) {
#if defined(__gfx950__)
    /* Formats 0: E4M3 both; scales are powers of two per 32 elements, 127 is 1. */
    acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(b.fp8x32, a.fp8x32, acc, 0, 0, 0,
                                                           0x7f7f7f7f, 0, 0x7f7f7f7f);
#else
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(b.fp8x8[0], a.fp8x8[0], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(b.fp8x8[1], a.fp8x8[1], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(b.fp8x8[2], a.fp8x8[2], acc, 0, 0, 0);
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(b.fp8x8[3], a.fp8x8[3], acc, 0, 0, 0);
#endif
    return acc;
}
#endif

#elif defined(VP_FAMILY_WMMA11)

/* Both halves of the wave hold the same 16 rows. */
#define VP_WAVE 32
#define VP_STEP_BYTES 32
#define VP_PIECES 1
#define VP_A_ROW(lane, p) ((lane) % 16)
#define VP_B_ROW(lane, p) ((lane) % 2 * 8 + (lane) % 16 / 2)
#define VP_PIECE_BYTE(lane) 0
#define VP_RUNS 1
#define VP_RUN 8
#define VP_OUT_ROW(lane, r) ((lane) % 16)
#define VP_OUT_COLUMN(lane, r) ((lane) / 16 * 8)
typedef vp_f32x8 vp_acc;

VP_FN vp_acc vp_mma_bf16(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(b.bf16x16, a.bf16x16, acc);
}

#elif defined(VP_FAMILY_WMMA12)

#define VP_WAVE 32
#define VP_STEP_BYTES 64
#define VP_PIECES 1
#define VP_A_ROW(lane, p) ((lane) % 16)
#define VP_B_ROW(lane, p) ((lane) % 16)
#define VP_PIECE_BYTE(lane) ((lane) / 16 * 32)
#define VP_RUNS 1
#define VP_RUN 8
#define VP_OUT_ROW(lane, r) ((lane) % 16)
#define VP_OUT_COLUMN(lane, r) ((lane) / 16 * 8)
typedef vp_f32x8 vp_acc;

VP_FN vp_acc vp_mma_bf16(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    acc = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(b.bf16x8[0], a.bf16x8[0], acc);
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(b.bf16x8[1], a.bf16x8[1], acc);
}

VP_FN vp_acc vp_mma_fp8(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    acc = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(b.fp8x8[0], a.fp8x8[0], acc);
    acc = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(b.fp8x8[1], a.fp8x8[1], acc);
    acc = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(b.fp8x8[2], a.fp8x8[2], acc);
    return __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(b.fp8x8[3], a.fp8x8[3], acc);
}

#elif defined(VP_FAMILY_PTX)

/* Words 0 to 3 of a fragment are of row lane / 4, 4 to 7 of the row 8 below. As operand b these are
 * the two halves of 16 columns. */
#define VP_WAVE 32
#define VP_STEP_BYTES 64
#define VP_PIECES 2
#define VP_A_ROW(lane, p) ((lane) / 4 + 8 * (p))
#define VP_B_ROW(lane, p) ((lane) / 8 * 4 + 2 * (p) + (lane) / 4 % 2)
#define VP_PIECE_BYTE(lane) ((lane) % 4 * 16)
#define VP_RUNS 2
#define VP_RUN 4
#define VP_OUT_ROW(lane, r) ((lane) / 4 + 8 * (r))
#define VP_OUT_COLUMN(lane, r) ((lane) % 4 * 4)
struct vp_acc_ptx {
    float v[8];
};
typedef struct vp_acc_ptx vp_acc;

#define VP_PTX_MMA(shape, d, a0, a1, a2, a3, b0, b1)                                               \
    asm volatile("mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "              \
                 "{%0,%1,%2,%3};"                                                                  \
                 : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                          \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define VP_PTX_FOUR(shape)                                                                         \
    VP_PTX_MMA(shape, acc.v, a.u[0], a.u[4], a.u[1], a.u[5], b.u[0], b.u[1]);                      \
    VP_PTX_MMA(shape, acc.v + 4, a.u[0], a.u[4], a.u[1], a.u[5], b.u[4], b.u[5]);                  \
    VP_PTX_MMA(shape, acc.v, a.u[2], a.u[6], a.u[3], a.u[7], b.u[2], b.u[3]);                      \
    VP_PTX_MMA(shape, acc.v + 4, a.u[2], a.u[6], a.u[3], a.u[7], b.u[6], b.u[7])

VP_FN vp_acc vp_mma_bf16(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    VP_PTX_FOUR("m16n8k16.row.col.f32.bf16.bf16.f32");
    return acc;
}

#if VP_FP8_UNITS
VP_FN vp_acc vp_mma_fp8(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    VP_PTX_FOUR("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    return acc;
}
#endif

#elif defined(VP_FAMILY_SCALAR)

/* One lane has a fragment of one row: the tile below is then 16 such, so that loads, stores and
 * edges are those of the others. */
#define VP_WAVE 1
#define VP_STEP_BYTES 32
#define VP_PIECES 1
#define VP_TILE_ROWS 1
#define VP_A_ROW(lane, p) 0
#define VP_B_ROW(lane, p) 0
#define VP_PIECE_BYTE(lane) 0
#define VP_RUNS 1
#define VP_RUN 1
#define VP_OUT_ROW(lane, r) 0
#define VP_OUT_COLUMN(lane, r) 0
typedef float vp_acc;

VP_FN vp_acc vp_mma_bf16(union vp_fragment a, union vp_fragment b, vp_acc acc) {
    vp_u32 i;

    for (i = 0; i < 8; i++) {
        acc += vp_low_bf16(a.u[i]) * vp_low_bf16(b.u[i]);
        acc += vp_high_bf16(a.u[i]) * vp_high_bf16(b.u[i]);
    }
    return acc;
}

#else

/* No matrix units that we know: the products are left out. */
#define VP_WAVE 32

#endif

#if !defined(VP_TILE_ROWS)
#define VP_TILE_ROWS 16
#endif
