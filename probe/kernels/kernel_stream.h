/* Kernels that go once through memory: reading, copying, triad, element-wise functions, quantising.
 * n counts 16-byte words of b0 unless said otherwise and is below 2^31; any number of blocks and
 * lanes will do. Those that measure bandwidth have four loads of a lane under way at once. */
#define VP_DEPTH 4

VP_ENTRY(vp_empty) { VP_UNUSED; }

/* b1[block]: a sum of all bits that the block read, so that nothing is left out. */
VP_ENTRY(vp_read) {
    VP_LOCAL float room[256];
    VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0;
    vp_u32 step = VP_BLOCKS * VP_LANES, i = VP_BLOCK * VP_LANES + VP_LANE, j, sum = 0;
    float all;

    VP_UNUSED;
    for (; i + (VP_DEPTH - 1) * step < p.n; i += VP_DEPTH * step) {
        struct vp_word w[VP_DEPTH];
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) w[j] = from[i + j * step];
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) sum += w[j].x ^ w[j].y ^ w[j].z ^ w[j].w;
    }
    for (; i < p.n; i += step) {
        struct vp_word w = from[i];
        sum += w.x ^ w.y ^ w.z ^ w.w;
    }
    all = vp_block_sum((float)(sum & 0xffffu), room);
    if (VP_LANE == 0)
        ((VP_G float *)b1)[VP_BLOCK] = all;
}

VP_ENTRY(vp_copy) {
    VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b1;
    vp_u32 step = VP_BLOCKS * VP_LANES, i = VP_BLOCK * VP_LANES + VP_LANE, j;

    VP_UNUSED;
    for (; i + (VP_DEPTH - 1) * step < p.n; i += VP_DEPTH * step) {
        struct vp_word w[VP_DEPTH];
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) w[j] = from[i + j * step];
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) to[i + j * step] = w[j];
    }
    for (; i < p.n; i += step)
        to[i] = from[i];
}

VP_FN vp_u32 vp_triad_one(vp_u32 a, vp_u32 b) {
    return vp_bits_of(vp_float_of(a) + 3.0f * vp_float_of(b));
}

VP_FN struct vp_word vp_triad_word(struct vp_word a, struct vp_word b) {
    a.x = vp_triad_one(a.x, b.x);
    a.y = vp_triad_one(a.y, b.y);
    a.z = vp_triad_one(a.z, b.z);
    a.w = vp_triad_one(a.w, b.w);
    return a;
}

/* b2 = b0 + 3 b1 in floats. */
VP_ENTRY(vp_triad) {
    VP_G const struct vp_word *left = (VP_G const struct vp_word *)b0;
    VP_G const struct vp_word *right = (VP_G const struct vp_word *)b1;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b2;
    vp_u32 step = VP_BLOCKS * VP_LANES, i = VP_BLOCK * VP_LANES + VP_LANE, j;

    VP_UNUSED;
    for (; i + (VP_DEPTH - 1) * step < p.n; i += VP_DEPTH * step) {
        struct vp_word a[VP_DEPTH], b[VP_DEPTH];
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) {
            a[j] = left[i + j * step];
            b[j] = right[i + j * step];
        }
        VP_UNROLL for (j = 0; j < VP_DEPTH; j++) to[i + j * step] = vp_triad_word(a[j], b[j]);
    }
    for (; i < p.n; i += step)
        to[i] = vp_triad_word(left[i], right[i]);
}

/* b2 = b0 + b1 in bf16. */
VP_ENTRY(vp_add) {
    VP_G const struct vp_word *left = (VP_G const struct vp_word *)b0;
    VP_G const struct vp_word *right = (VP_G const struct vp_word *)b1;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b2;
    vp_u32 step = VP_BLOCKS * VP_LANES, i, j;

    VP_UNUSED;
    for (i = VP_BLOCK * VP_LANES + VP_LANE; i < p.n; i += step) {
        float a[8], b[8];
        vp_unpack(left[i], a);
        vp_unpack(right[i], b);
        for (j = 0; j < 8; j++)
            a[j] += b[j];
        to[i] = vp_pack(a);
    }
}

/* b1 = gelu(b0), with option 1 silu(b0). */
VP_ENTRY(vp_activate) {
    VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b1;
    vp_u32 step = VP_BLOCKS * VP_LANES, i, j;

    VP_UNUSED;
    for (i = VP_BLOCK * VP_LANES + VP_LANE; i < p.n; i += step) {
        float x[8];
        vp_unpack(from[i], x);
        for (j = 0; j < 8; j++)
            x[j] = p.option ? vp_silu(x[j]) : vp_gelu(x[j]);
        to[i] = vp_pack(x);
    }
}

/* b1[m, n] = silu(b0[m, 0..n)) b0[m, n..2n); n counts words of a row of the result. */
VP_ENTRY(vp_swiglu) {
    VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b1;
    vp_u32 row, i, j;

    VP_UNUSED;
    for (row = VP_BLOCK; row < p.m; row += VP_BLOCKS) {
        VP_G const struct vp_word *gate = from + (vp_u64)row * 2 * p.n;
        for (i = VP_LANE; i < p.n; i += VP_LANES) {
            float x[8], up[8];
            vp_unpack(gate[i], x);
            vp_unpack(gate[p.n + i], up);
            for (j = 0; j < 8; j++)
                x[j] = vp_silu(x[j]) * up[j];
            to[(vp_u64)row * p.n + i] = vp_pack(x);
        }
    }
}

/* The nearest whole number in [-127, 127], ties to even, as two's complement: at 1.5 x 2^23 a
 * float's last bits count ones. */
VP_FN vp_u32 vp_code_int8(float value) {
    value = value > 127.0f ? 127.0f : value < -127.0f ? -127.0f : value;
    return vp_bits_of(value + 12582912.0f) & 0xffu;
}

VP_FN float vp_value_int8(vp_u32 code) { return (float)(code < 128 ? (int)code : (int)code - 256); }

VP_FN vp_u32 vp_codes4(const float *x, float inverse, vp_u32 int8) {
    vp_u32 codes = 0, j;

    for (j = 0; j < 4; j++)
        codes |= (int8 ? vp_code_int8(x[j] * inverse) : vp_e4m3_code(x[j] * inverse)) << (8 * j);
    return codes;
}

/* b1 = codes of the bf16 values b0 with the scale scale0: E4M3, with option 1 INT8. */
VP_ENTRY(vp_quantise) {
    VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0;
    VP_G struct vp_half *to = (VP_G struct vp_half *)b1;
    vp_u32 step = VP_BLOCKS * VP_LANES, i;
    float inverse = 1.0f / p.scale0;

    VP_UNUSED;
    for (i = VP_BLOCK * VP_LANES + VP_LANE; i < p.n; i += step) {
        struct vp_half codes;
        float x[8];
        vp_unpack(from[i], x);
        codes.x = vp_codes4(x, inverse, p.option);
        codes.y = vp_codes4(x + 4, inverse, p.option);
        to[i] = codes;
    }
}

VP_FN void vp_values4(vp_u32 codes, float scale, vp_u32 int8, float *x) {
    vp_u32 j;

    if (int8) {
        for (j = 0; j < 4; j++)
            x[j] = vp_value_int8((codes >> (8 * j)) & 0xffu);
    } else {
        vp_e4m3_decode4(codes, x);
    }
    for (j = 0; j < 4; j++)
        x[j] *= scale;
}

/* b1 = bf16 values of the codes b0; n counts words of the result. */
VP_ENTRY(vp_dequantise) {
    VP_G const struct vp_half *from = (VP_G const struct vp_half *)b0;
    VP_G struct vp_word *to = (VP_G struct vp_word *)b1;
    vp_u32 step = VP_BLOCKS * VP_LANES, i;

    VP_UNUSED;
    for (i = VP_BLOCK * VP_LANES + VP_LANE; i < p.n; i += step) {
        float x[8];
        struct vp_half codes = from[i];
        vp_values4(codes.x, p.scale0, p.option, x);
        vp_values4(codes.y, p.scale0, p.option, x + 4);
        to[i] = vp_pack(x);
    }
}
