/* Products and attention of one token: what decoding does, bound by reading. */

/* b2[n] = b0[k] b1[n, k] transposed, times scale0 scale1; n a multiple of 4, k of 8: a block makes
 * four results. */
VP_FN void vp_gemv_rows(VP_G const void *x, VP_G const void *w, VP_G void *y, vp_u32 n, vp_u32 k,
                        float scale, int fp8, VP_L float *room) {
    vp_u32 first, row, i, j, words = k / 8;

    for (first = VP_BLOCK * 4; first < n; first += VP_BLOCKS * 4) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};

        for (i = VP_LANE; i < words; i += VP_LANES) {
            float in[8], weight[8];
            vp_load8(x, i, fp8, in);
            for (row = 0; row < 4; row++) {
                vp_load8(w, (vp_u64)(first + row) * words + i, fp8, weight);
                for (j = 0; j < 8; j++)
                    sum[row] += in[j] * weight[j];
            }
        }
        for (row = 0; row < 4; row++) {
            float all = vp_block_sum(sum[row], room) * scale;
            if (VP_LANE == 0)
                ((VP_G vp_bf16 *)y)[first + row] = (vp_bf16)vp_to_bf16(all);
        }
    }
}

VP_ENTRY(vp_gemv_bf16) {
    VP_LOCAL float room[256];

    VP_UNUSED;
    vp_gemv_rows(b0, b1, b2, p.n, p.k, p.scale0 * p.scale1, 0, room);
}

VP_ENTRY(vp_gemv_fp8) {
    VP_LOCAL float room[256];

    VP_UNUSED;
    vp_gemv_rows(b0, b1, b2, p.n, p.k, p.scale0 * p.scale1, 1, room);
}

/* Attention of one new token. A block takes up to 8 query heads of one KV head over up to 256
 * cached tokens of one sequence, and leaves a maximum, a sum and an unscaled result for each head;
 * vp_combine puts the pieces together. head_dim is a multiple of 8, at most 256. */
#define VP_CHUNK 256
#define VP_HEADS 8
#define VP_MAX_DIM 256

struct vp_decode_shape {
    vp_u32 tokens, heads, kv_heads, dim, group, passes, chunks;
};

VP_FN struct vp_decode_shape vp_decode_shape_of(struct vp_numbers numbers) {
    struct vp_decode_shape s;

    s.tokens = numbers.n;
    s.heads = numbers.heads;
    s.kv_heads = numbers.kv_heads;
    s.dim = numbers.head_dim;
    s.group = s.heads / s.kv_heads;
    s.passes = (s.group + VP_HEADS - 1) / VP_HEADS;
    s.chunks = (s.tokens + VP_CHUNK - 1) / VP_CHUNK;
    return s;
}

/* What a block does: counts heads from `head` on, tokens from `token` on. */
struct vp_decode_part {
    vp_u32 sequence, kv_head, head, count, token, end, chunk;
};

VP_FN struct vp_decode_part vp_decode_part_of(struct vp_decode_shape s, vp_u32 block) {
    struct vp_decode_part p;
    vp_u32 pass;

    p.chunk = block % s.chunks;
    block /= s.chunks;
    pass = block % s.passes;
    block /= s.passes;
    p.kv_head = block % s.kv_heads;
    p.sequence = block / s.kv_heads;
    p.head = p.kv_head * s.group + pass * VP_HEADS;
    p.count = s.group - pass * VP_HEADS;
    p.count = p.count < VP_HEADS ? p.count : VP_HEADS;
    p.token = p.chunk * VP_CHUNK;
    p.end = p.token + VP_CHUNK < s.tokens ? p.token + VP_CHUNK : s.tokens;
    return p;
}

/* Position, in steps of 8 elements, of a token's keys or values. */
VP_FN vp_u64 vp_kv_index(struct vp_decode_shape s, struct vp_decode_part p, vp_u32 token) {
    return (((vp_u64)p.sequence * s.tokens + token) * s.kv_heads + p.kv_head) * (s.dim / 8);
}

/* score[head][token of the chunk] = query times key; four lanes share a token. */
VP_FN void vp_decode_scores(VP_G const void *keys, struct vp_decode_shape s,
                            struct vp_decode_part p, int fp8, float scale, const VP_L float *query,
                            VP_L float *score, VP_L float *room) {
    vp_u32 team = VP_LANES >= 4 ? 4 : 1, member = VP_LANE % team, step = VP_LANES / team;
    vp_u32 base, i, j, h;

    for (base = p.token; base < p.end; base += step) {
        vp_u32 token = base + VP_LANE / team;
        float sum[VP_HEADS], x[8];

        for (h = 0; h < VP_HEADS; h++)
            sum[h] = 0.0f;
        if (token < p.end) {
            vp_u64 at = vp_kv_index(s, p, token);
            for (i = member; i < s.dim / 8; i += team) {
                vp_load8(keys, at + i, fp8, x);
                for (h = 0; h < VP_HEADS; h++)
                    for (j = 0; j < 8; j++)
                        sum[h] += x[j] * query[h * VP_MAX_DIM + 8 * i + j];
            }
        }
        for (h = 0; h < VP_HEADS; h++)
            room[h * VP_LANES + VP_LANE] = sum[h];
        VP_BARRIER;
        /* A lane adds up what its token's team has, for the heads that fall to it. */
        for (h = member; token < p.end && h < VP_HEADS; h += team) {
            float all = 0.0f;
            for (j = 0; j < team; j++)
                all += room[h * VP_LANES + VP_LANE - member + j];
            score[h * VP_CHUNK + token - p.token] = all * scale;
        }
        VP_BARRIER;
    }
}

/* Turns the scores of each head into exp(score - maximum). */
VP_FN void vp_decode_softmax(struct vp_decode_part p, VP_L float *score, VP_L float *room,
                             VP_G float *out, vp_u32 pitch) {
    vp_u32 h, i, step, count = p.end - p.token;

    for (h = 0; h < p.count; h++) {
        VP_L float *row = score + h * VP_CHUNK;
        float most = -3.0e38f, sum = 0.0f;

        for (i = VP_LANE; i < count; i += VP_LANES)
            most = row[i] > most ? row[i] : most;
        room[VP_LANE] = most;
        VP_BARRIER;
        for (step = VP_LANES / 2; step > 0; step /= 2) {
            if (VP_LANE < step && room[VP_LANE + step] > room[VP_LANE])
                room[VP_LANE] = room[VP_LANE + step];
            VP_BARRIER;
        }
        most = room[0];
        VP_BARRIER;
        for (i = VP_LANE; i < count; i += VP_LANES) {
            row[i] = VP_EXP2((row[i] - most) * 1.44269504f);
            sum += row[i];
        }
        sum = vp_block_sum(sum, room);
        if (VP_LANE == 0) {
            out[(vp_u64)h * pitch] = most;
            out[(vp_u64)h * pitch + 1] = sum;
        }
    }
}

/* out[head][2..] = sum of the weights times the values; a lane has 8 elements of every `groups`th
 * token. */
VP_FN void vp_decode_values(VP_G const void *values, struct vp_decode_shape s,
                            struct vp_decode_part p, int fp8, float scale, const VP_L float *score,
                            VP_L float *room, VP_G float *out, vp_u32 pitch) {
    vp_u32 words = s.dim / 8, wide = words < VP_LANES ? words : VP_LANES;
    vp_u32 groups = VP_LANES / wide, group = VP_LANE / wide, base, i, j, h, token;

    for (base = 0; base < words; base += wide) {
        vp_u32 word = base + VP_LANE % wide;
        float sum[VP_HEADS][8], x[8];

        for (h = 0; h < VP_HEADS; h++)
            for (j = 0; j < 8; j++)
                sum[h][j] = 0.0f;
        for (token = p.token + group; group < groups && word < words && token < p.end;
             token += groups) {
            vp_load8(values, vp_kv_index(s, p, token) + word, fp8, x);
            for (h = 0; h < VP_HEADS; h++)
                for (j = 0; j < 8; j++)
                    sum[h][j] += x[j] * score[h * VP_CHUNK + token - p.token];
        }
        for (h = 0; h < VP_HEADS; h++) {
            for (j = 0; j < 8; j++)
                room[VP_LANE * 8 + j] = sum[h][j];
            VP_BARRIER;
            for (i = VP_LANE; h < p.count && i < wide * 8 && base * 8 + i < s.dim; i += VP_LANES) {
                float all = 0.0f;
                for (j = 0; j < groups; j++)
                    all += room[j * wide * 8 + i];
                out[(vp_u64)h * pitch + 2 + base * 8 + i] = all * scale;
            }
            VP_BARRIER;
        }
    }
}

VP_FN void vp_decode_block(VP_G const void *q, VP_G const void *keys, VP_G const void *values,
                           VP_G float *out, struct vp_decode_shape s, int fp8, float key_scale,
                           float value_scale, VP_L float *query, VP_L float *score,
                           VP_L float *room) {
    struct vp_decode_part p = vp_decode_part_of(s, VP_BLOCK);
    vp_u32 pitch = s.chunks * (s.dim + 2), i;
    float x[8];
    vp_u32 j;

    out += ((vp_u64)p.sequence * s.heads + p.head) * pitch + (vp_u64)p.chunk * (s.dim + 2);
    for (i = VP_LANE; i < VP_HEADS * VP_CHUNK; i += VP_LANES)
        score[i] = 0.0f;
    for (i = VP_LANE; i < VP_HEADS * (s.dim / 8); i += VP_LANES) {
        vp_u32 h = i / (s.dim / 8), word = i % (s.dim / 8);
        if (h < p.count)
            vp_load8(q, ((vp_u64)p.sequence * s.heads + p.head + h) * (s.dim / 8) + word, 0, x);
        for (j = 0; j < 8; j++)
            query[h * VP_MAX_DIM + 8 * word + j] = h < p.count ? x[j] : 0.0f;
    }
    VP_BARRIER;
    vp_decode_scores(keys, s, p, fp8, key_scale * VP_RSQRT((float)s.dim), query, score, room);
    vp_decode_softmax(p, score, room, out, pitch);
    vp_decode_values(values, s, p, fp8, value_scale, score, room, out, pitch);
}

/* b0 q[batch, heads, dim] bf16, b1 and b2 keys and values [batch, n, kv_heads, dim]; b4 the pieces,
 * [batch, heads, chunks, dim + 2] floats. A block per piece (vp_decode_part_of). */
VP_ENTRY(vp_decode_bf16) {
    VP_LOCAL float query[VP_HEADS * VP_MAX_DIM], score[VP_HEADS * VP_CHUNK], room[8 * 256];

    VP_UNUSED;
    vp_decode_block(b0, b1, b2, (VP_G float *)b4, vp_decode_shape_of(p), 0, p.scale0, p.scale1,
                    query, score, room);
}

VP_ENTRY(vp_decode_fp8) {
    VP_LOCAL float query[VP_HEADS * VP_MAX_DIM], score[VP_HEADS * VP_CHUNK], room[8 * 256];

    VP_UNUSED;
    vp_decode_block(b0, b1, b2, (VP_G float *)b4, vp_decode_shape_of(p), 1, p.scale0, p.scale1,
                    query, score, room);
}

/* b3[batch, heads, dim] bf16 from the pieces b4; a block per sequence and head. */
VP_ENTRY(vp_combine) {
    vp_u32 chunks = (p.n + VP_CHUNK - 1) / VP_CHUNK, i, c;
    VP_G const float *piece = (VP_G const float *)b4 + (vp_u64)VP_BLOCK * chunks * (p.head_dim + 2);
    float most = -3.0e38f, sum = 0.0f;

    VP_UNUSED;
    for (c = 0; c < chunks; c++)
        most =
            piece[(vp_u64)c * (p.head_dim + 2)] > most ? piece[(vp_u64)c * (p.head_dim + 2)] : most;
    for (c = 0; c < chunks; c++) {
        VP_G const float *one = piece + (vp_u64)c * (p.head_dim + 2);
        sum += one[1] * VP_EXP2((one[0] - most) * 1.44269504f);
    }
    for (i = VP_LANE; i < p.head_dim; i += VP_LANES) {
        float all = 0.0f;
        for (c = 0; c < chunks; c++) {
            VP_G const float *one = piece + (vp_u64)c * (p.head_dim + 2);
            all += one[2 + i] * VP_EXP2((one[0] - most) * 1.44269504f);
        }
        ((VP_G vp_bf16 *)b3)[(vp_u64)VP_BLOCK * p.head_dim + i] = (vp_bf16)vp_to_bf16(all / sum);
    }
}
