/* Matrix products by the matrix units. A wave makes 4 x 4 tiles, a block of four waves 8 x 8: of 16
 * x 16 elements each, so 128 x 128. Operands go from memory to registers, helped by the caches
 * alone: a floor of what the chip does and right on every shape; a vendor's library is faster. */

/* b2: eight numbers that say what the others are made for. */
VP_ENTRY(vp_describe) {
    VP_G vp_u32 *out = (VP_G vp_u32 *)b2;

    VP_UNUSED;
    if (VP_BLOCK == 0 && VP_LANE == 0) {
        out[0] = 0x56504b31u; /* "VPK1" */
        out[1] = VP_WAVE;
        out[2] = 8 * VP_TILE_ROWS; /* rows and columns of a block's result */
        out[3] = VP_FP8_UNITS;
        out[4] = VP_FNUZ;
#if defined(VP_FAMILY_NONE)
        out[5] = 0;
        out[6] = 0;
#else
        out[5] = 1;
        out[6] = VP_STEP_BYTES;
#endif
        out[7] = VP_LANES;
    }
}

#if !defined(VP_FAMILY_NONE)

/* A piece of an operand: where its rows start, bytes from row to row, the last row. */
struct vp_operand {
    VP_G const vp_u8 *base;
    vp_u64 pitch;
    vp_u32 rows;
    int second; /* it is b */
};

VP_FN vp_u32 vp_piece_row(struct vp_operand o, vp_u32 lane, vp_u32 p) {
    (void)lane, (void)p;
    return o.second ? VP_B_ROW(lane, p) : VP_A_ROW(lane, p);
}

VP_FN VP_G const struct vp_word *vp_piece(struct vp_operand o, vp_u32 row, vp_u32 byte) {
    row = row < o.rows ? row : o.rows - 1; /* results of rows past the end are not stored */
    return (VP_G const struct vp_word *)(o.base + row * o.pitch + byte);
}

/* Rows `row`.. and bytes `byte`.. of an operand as they are. */
VP_FN union vp_fragment vp_fragment_load(struct vp_operand o, vp_u32 row, vp_u32 byte,
                                         vp_u32 lane) {
    union vp_fragment f;
    vp_u32 p;

    VP_UNROLL for (p = 0; p < 2; p++) {
        vp_u32 skip = VP_PIECES == 2 ? 0 : 16 * p;
        f.word[p] = *vp_piece(o, row + vp_piece_row(o, lane, p), byte + VP_PIECE_BYTE(lane) + skip);
    }
    return f;
}

#if !VP_FP8_UNITS
VP_FN void vp_decode_pairs(vp_u32 codes, vp_u32 *out) {
    float x[4];

    vp_e4m3_decode4(codes, x);
    /* Every code has a bf16 value, so nothing is rounded. */
    out[0] = (vp_bits_of(x[0]) >> 16) | (vp_bits_of(x[1]) & 0xffff0000u);
    out[1] = (vp_bits_of(x[2]) >> 16) | (vp_bits_of(x[3]) & 0xffff0000u);
}

/* The same of an FP8 operand, as bf16: `byte` counts bytes of bf16. */
VP_FN union vp_fragment vp_fragment_decode(struct vp_operand o, vp_u32 row, vp_u32 byte,
                                           vp_u32 lane) {
    union vp_fragment f;
    vp_u32 p;

    VP_UNROLL for (p = 0; p < 2; p++) {
        vp_u32 skip = VP_PIECES == 2 ? 0 : 16 * p;
        VP_G const struct vp_half *codes = (VP_G const struct vp_half *)vp_piece(
            o, row + vp_piece_row(o, lane, p), (byte + VP_PIECE_BYTE(lane) + skip) / 2);
        struct vp_half both = *codes;

        vp_decode_pairs(both.x, f.u + 4 * p);
        vp_decode_pairs(both.y, f.u + 4 * p + 2);
    }
    return f;
}
#endif

/* How operands come and what multiplies them. */
#define VP_AS_BF16 0
#define VP_AS_FP8 1
#define VP_AS_DECODED 2

VP_FN union vp_fragment vp_fragment_of(struct vp_operand o, vp_u32 row, vp_u32 byte, vp_u32 lane,
                                       int as) {
#if !VP_FP8_UNITS
    if (as == VP_AS_DECODED)
        return vp_fragment_decode(o, row, byte, lane);
#endif
    (void)as;
    return vp_fragment_load(o, row, byte, lane);
}

VP_FN vp_acc vp_mma(union vp_fragment a, union vp_fragment b, vp_acc acc, int as) {
#if VP_FP8_UNITS
    if (as == VP_AS_FP8)
        return vp_mma_fp8(a, b, acc);
#endif
    (void)as;
    return vp_mma_bf16(a, b, acc);
}

#if defined(VP_FAMILY_SCALAR)
#define VP_ACC_AT(acc, i) (acc)
#elif defined(VP_FAMILY_PTX)
/* Runs are of a row: floats 0, 1, 4, 5 and 2, 3, 6, 7. */
#define VP_ACC_AT(acc, i) (acc).v[(i) / 4 * 2 + (i) % 4 / 2 * 4 + (i) % 2]
#else
#define VP_ACC_AT(acc, i) (acc)[i]
#endif

/* n is a multiple of 8, so a run is inside the result or outside as a whole. */
VP_FN void vp_tile_store(VP_G vp_bf16 *c, vp_acc acc, vp_u32 row, vp_u32 column, vp_u32 m, vp_u32 n,
                         vp_u32 lane, float scale) {
    vp_u32 run;

    (void)lane;
    VP_UNROLL for (run = 0; run < VP_RUNS; run++) {
        vp_u32 r = row + VP_OUT_ROW(lane, run), s = column + VP_OUT_COLUMN(lane, run);
        VP_G vp_bf16 *to = c + (vp_u64)r * n + s;

        if (r < m && s < n) {
#if VP_RUN == 1
            *to = (vp_bf16)vp_to_bf16(VP_ACC_AT(acc, 0) * scale);
#else
            vp_u32 i;

            VP_UNROLL for (i = 0; i < VP_RUN / 4; i++) {
                struct vp_half half;

                half.x = vp_pack_bf16(VP_ACC_AT(acc, run * VP_RUN + 4 * i) * scale,
                                      VP_ACC_AT(acc, run * VP_RUN + 4 * i + 1) * scale);
                half.y = vp_pack_bf16(VP_ACC_AT(acc, run * VP_RUN + 4 * i + 2) * scale,
                                      VP_ACC_AT(acc, run * VP_RUN + 4 * i + 3) * scale);
                ((VP_G struct vp_half *)to)[i] = half;
            }
#endif
        }
    }
}

/* c[m, n] = a[m, k] b[n, k] transposed, times scale; a row of an operand has
 * `bytes` bytes of fragments (twice those in memory when they are decoded). Blocks walk down
 * columns of b first, so that neighbours share it in the caches. */
VP_FN void vp_gemm_block(VP_G const void *a, VP_G const void *b, VP_G void *c, vp_u32 m, vp_u32 n,
                         vp_u32 bytes, float scale, int as) {
    vp_u32 side = 8 * VP_TILE_ROWS, tall = (m + side - 1) / side;
    vp_u32 lane = VP_LANE % VP_WAVE, wave = VP_LANE / VP_WAVE, waves = VP_LANES / VP_WAVE, quarter;
    struct vp_operand left, right;

    left.base = (VP_G const vp_u8 *)a;
    right.base = (VP_G const vp_u8 *)b;
    left.pitch = right.pitch = as == VP_AS_DECODED ? bytes / 2 : bytes;
    left.rows = m;
    right.rows = n;
    left.second = 0;
    right.second = 1;
    for (quarter = wave; quarter < 4; quarter += waves) {
        vp_u32 row = VP_BLOCK % tall * side + quarter % 2 * 4 * VP_TILE_ROWS;
        vp_u32 column = VP_BLOCK / tall * side + quarter / 2 * 4 * VP_TILE_ROWS;
        vp_acc acc[4][4] = {};
        vp_u32 byte, i, j;

        for (byte = 0; byte < bytes; byte += VP_STEP_BYTES) {
            union vp_fragment x[4], y[4];

            VP_UNROLL for (i = 0; i < 4; i++) {
                x[i] = vp_fragment_of(left, row + i * VP_TILE_ROWS, byte, lane, as);
                y[i] = vp_fragment_of(right, column + i * VP_TILE_ROWS, byte, lane, as);
            }
            VP_UNROLL for (i = 0; i < 4; i++) {
                VP_UNROLL for (j = 0; j < 4; j++) acc[i][j] = vp_mma(x[i], y[j], acc[i][j], as);
            }
        }
        VP_UNROLL for (i = 0; i < 4; i++) {
            VP_UNROLL for (j = 0; j < 4; j++)
                vp_tile_store((VP_G vp_bf16 *)c, acc[i][j], row + i * VP_TILE_ROWS,
                              column + j * VP_TILE_ROWS, m, n, lane, scale);
        }
    }
}

/* b2[m, n] = b0[m, k] b1[n, k] transposed, times scale0 scale1. k times the element's bytes is a
 * multiple of 128. */
VP_ENTRY(vp_gemm_bf16) {
    VP_UNUSED;
    vp_gemm_block(b0, b1, b2, p.m, p.n, 2 * p.k, p.scale0 * p.scale1, VP_AS_BF16);
}

/* The same of E4M3 operands; where the units cannot, they are decoded to bf16 on the way. */
VP_ENTRY(vp_gemm_fp8) {
    VP_UNUSED;
#if VP_FP8_UNITS
    vp_gemm_block(b0, b1, b2, p.m, p.n, p.k, p.scale0 * p.scale1, VP_AS_FP8);
#else
    vp_gemm_block(b0, b1, b2, p.m, p.n, 2 * p.k, p.scale0 * p.scale1, VP_AS_DECODED);
#endif
}

#endif
