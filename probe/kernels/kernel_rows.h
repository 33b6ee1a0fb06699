/* Norms: a block per row of b0[m, n] bf16; n counts 16-byte words of a row. The second pass over a
 * row finds it in the caches. */

/* b2 = RMS norm of the rows, times b1. */
VP_ENTRY(vp_norm) {
    VP_LOCAL float room[256];
    vp_u32 row, i, j;

    VP_UNUSED;
    for (row = VP_BLOCK; row < p.m; row += VP_BLOCKS) {
        VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0 + (vp_u64)row * p.n;
        VP_G struct vp_word *to = (VP_G struct vp_word *)b2 + (vp_u64)row * p.n;
        float x[8], w[8], sum = 0.0f, factor;

        for (i = VP_LANE; i < p.n; i += VP_LANES) {
            vp_unpack(from[i], x);
            for (j = 0; j < 8; j++)
                sum += x[j] * x[j];
        }
        factor = VP_RSQRT(vp_block_sum(sum, room) / (8.0f * (float)p.n) + 1e-5f);
        for (i = VP_LANE; i < p.n; i += VP_LANES) {
            vp_unpack(from[i], x);
            vp_unpack(((VP_G const struct vp_word *)b1)[i], w);
            for (j = 0; j < 8; j++)
                x[j] *= factor * w[j];
            to[i] = vp_pack(x);
        }
    }
}

/* b2 = layer norm of the rows, times b1[0..), plus b1[n..); with option 1 also GELU of that. */
VP_ENTRY(vp_layernorm) {
    VP_LOCAL float room[256];
    VP_G const struct vp_word *weight = (VP_G const struct vp_word *)b1;
    vp_u32 row, i, j;

    VP_UNUSED;
    for (row = VP_BLOCK; row < p.m; row += VP_BLOCKS) {
        VP_G const struct vp_word *from = (VP_G const struct vp_word *)b0 + (vp_u64)row * p.n;
        VP_G struct vp_word *to = (VP_G struct vp_word *)b2 + (vp_u64)row * p.n;
        float x[8], w[8], b[8], sum = 0.0f, squares = 0.0f, mean, factor;

        for (i = VP_LANE; i < p.n; i += VP_LANES) {
            vp_unpack(from[i], x);
            for (j = 0; j < 8; j++) {
                sum += x[j];
                squares += x[j] * x[j];
            }
        }
        mean = vp_block_sum(sum, room) / (8.0f * (float)p.n);
        squares = vp_block_sum(squares, room) / (8.0f * (float)p.n);
        factor = VP_RSQRT(squares - mean * mean + 1e-5f);
        for (i = VP_LANE; i < p.n; i += VP_LANES) {
            vp_unpack(from[i], x);
            vp_unpack(weight[i], w);
            vp_unpack(weight[p.n + i], b);
            for (j = 0; j < 8; j++) {
                x[j] = (x[j] - mean) * factor * w[j] + b[j];
                x[j] = p.option ? vp_gelu(x[j]) : x[j];
            }
            to[i] = vp_pack(x);
        }
    }
}
