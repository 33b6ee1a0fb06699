/* The first part of the probe's device kernels: one text for four languages. It is compiled by
 * clang for AMD GPUs (ahead of time, and by hipRTC), by NVRTC for NVIDIA GPUs, as OpenCL C, and as
 * C11 for the processor, where a block has a single lane. The parts stand side by side and are
 * joined in the order of kernel_all.h; they include nothing else, for no headers are there at run
 * time.
 *
 * What holds in all of it: C89-like code of the common subset; 1-D grids; every entry has the same
 * parameters (VP_ENTRY), so that a launch is one array of arguments; counts are 32 bits (of 16-byte
 * words where that matters), positions in memory 64.
 *
 * FP8 is E4M3: FNUZ where the chip's matrix units read it that way (gfx940 to gfx942), else OCP. */

#if defined(__OPENCL_VERSION__)

#define VP_FN static
#define VP_G __global
#define VP_L __local
#define VP_LOCAL __local
#define VP_RESTRICT restrict
#define VP_START __kernel void
#define VP_LANE ((vp_u32)get_local_id(0))
#define VP_LANES ((vp_u32)get_local_size(0))
#define VP_BLOCK ((vp_u32)get_group_id(0))
#define VP_BLOCKS ((vp_u32)get_num_groups(0))
#define VP_BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define VP_EXP2(x) exp2(x)
#define VP_RSQRT(x) rsqrt(x)
#define VP_RCP(x) (1.0f / (x))
#define VP_UNROLL
#define VP_ALIGN8 __attribute__((aligned(8)))
#define VP_ALIGN16 __attribute__((aligned(16)))
typedef ulong vp_u64;

#elif defined(__AMDGCN__)

/* The attributes that __device__ and its like stand for, so that no header is needed and none that
 * hipRTC brings is in the way. */
#define VP_FN static __attribute__((device, always_inline)) inline
#define VP_G
#define VP_L
#define VP_LOCAL __attribute__((shared))
#define VP_RESTRICT __restrict__
#define VP_START                                                                                   \
    extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256))) void
#define VP_LANE ((vp_u32)__builtin_amdgcn_workitem_id_x())
#define VP_LANES vp_amd_lanes()
#define VP_BLOCK ((vp_u32)__builtin_amdgcn_workgroup_id_x())
#define VP_BLOCKS vp_amd_blocks()
#define VP_BARRIER vp_amd_barrier()
#define VP_EXP2(x) __builtin_exp2f(x)
#define VP_RSQRT(x) __builtin_amdgcn_rsqf(x)
#define VP_RCP(x) __builtin_amdgcn_rcpf(x)
#define VP_UNROLL _Pragma("unroll")
#define VP_ALIGN8 __attribute__((aligned(8)))
#define VP_ALIGN16 __attribute__((aligned(16)))
typedef unsigned long vp_u64;

#elif defined(__CUDACC__)

#define VP_FN static __device__ __forceinline__
#define VP_G
#define VP_L
#define VP_LOCAL __shared__
#define VP_RESTRICT __restrict__
#define VP_START extern "C" __global__ void __launch_bounds__(256)
#define VP_LANE ((vp_u32)threadIdx.x)
#define VP_LANES ((vp_u32)blockDim.x)
#define VP_BLOCK ((vp_u32)blockIdx.x)
#define VP_BLOCKS ((vp_u32)gridDim.x)
#define VP_BARRIER __syncthreads()
#define VP_EXP2(x) exp2f(x)
#define VP_RSQRT(x) rsqrtf(x)
#define VP_RCP(x) __fdividef(1.0f, x)
#define VP_UNROLL _Pragma("unroll")
#define VP_ALIGN8 __align__(8)
#define VP_ALIGN16 __align__(16)
typedef unsigned long long vp_u64;

#else /* C11 on the processor; the includer sets the two counters and calls block after block */

#define VP_FN static inline
#define VP_G
#define VP_L
#define VP_LOCAL
#define VP_RESTRICT restrict
#define VP_START static void
#define VP_LANE 0u
#define VP_LANES 1u
#define VP_BLOCK vp_host_block
#define VP_BLOCKS vp_host_blocks
#define VP_BARRIER ((void)0)
#define VP_EXP2(x) exp2f(x)
#define VP_RSQRT(x) (1.0f / sqrtf(x))
#define VP_RCP(x) (1.0f / (x))
#define VP_UNROLL
#define VP_ALIGN8 __attribute__((aligned(8)))
#define VP_ALIGN16 __attribute__((aligned(16)))
typedef unsigned long vp_u64;
static unsigned int vp_host_block, vp_host_blocks = 1;

#endif

typedef unsigned int vp_u32;
typedef unsigned short vp_bf16;
typedef unsigned char vp_u8;

/* The numbers of a launch, as far as a kernel needs them. Kept in step with struct
 * vp_kernel_numbers of gpu_launch.h, which the host fills. */
struct vp_numbers {
    vp_u32 m, n, k, heads, kv_heads, head_dim, option;
    float scale0, scale1;
};

/* Every entry: up to five buffers (what they are is said in the launch's table) and the numbers
 * `p`. */
#define VP_ENTRY(name)                                                                             \
    VP_START name(VP_G void *VP_RESTRICT b0, VP_G void *VP_RESTRICT b1, VP_G void *VP_RESTRICT b2, \
                  VP_G void *VP_RESTRICT b3, VP_G void *VP_RESTRICT b4, struct vp_numbers p)
#define VP_UNUSED (void)b0, (void)b1, (void)b2, (void)b3, (void)b4, (void)p

#if defined(__AMDGCN__) && !defined(__OPENCL_VERSION__)
/* The number of lanes of a block and of blocks stands in the packet that started the kernel (HSA's
 * kernel dispatch packet: workgroup_size_x at byte 4, grid_size_x, in lanes, at byte 12). */
VP_FN vp_u32 vp_amd_lanes(void) {
    return *(const unsigned short __attribute__((address_space(
        4))) *)((const char __attribute__((address_space(4))) *)__builtin_amdgcn_dispatch_ptr() +
                4);
}

VP_FN vp_u32 vp_amd_blocks(void) {
    return *(const unsigned int
             __attribute__((address_space(4))) *)((const char __attribute__((address_space(4))) *)
                                                      __builtin_amdgcn_dispatch_ptr() +
                                                  12) /
           vp_amd_lanes();
}

VP_FN void vp_amd_barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#endif

/* What a lane loads and stores at once. */
struct VP_ALIGN16 vp_word {
    vp_u32 x, y, z, w;
};

struct VP_ALIGN8 vp_half {
    vp_u32 x, y;
};

VP_FN float vp_float_of(vp_u32 bits) {
    union {
        vp_u32 u;
        float f;
    } v;
    v.u = bits;
    return v.f;
}

VP_FN vp_u32 vp_bits_of(float value) {
    union {
        vp_u32 u;
        float f;
    } v;
    v.f = value;
    return v.u;
}

/* Two bf16 of a 32-bit word, the lower one first. */
VP_FN float vp_low_bf16(vp_u32 pair) { return vp_float_of(pair << 16); }
VP_FN float vp_high_bf16(vp_u32 pair) { return vp_float_of(pair & 0xffff0000u); }

/* Rounds to the nearest, ties to even; no NaN comes here. */
VP_FN vp_u32 vp_to_bf16(float value) {
    vp_u32 bits = vp_bits_of(value);

    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

VP_FN vp_u32 vp_pack_bf16(float low, float high) {
    return vp_to_bf16(low) | (vp_to_bf16(high) << 16);
}

VP_FN void vp_unpack(struct vp_word word, float *out) {
    out[0] = vp_low_bf16(word.x);
    out[1] = vp_high_bf16(word.x);
    out[2] = vp_low_bf16(word.y);
    out[3] = vp_high_bf16(word.y);
    out[4] = vp_low_bf16(word.z);
    out[5] = vp_high_bf16(word.z);
    out[6] = vp_low_bf16(word.w);
    out[7] = vp_high_bf16(word.w);
}

VP_FN struct vp_word vp_pack(const float *in) {
    struct vp_word word;

    word.x = vp_pack_bf16(in[0], in[1]);
    word.y = vp_pack_bf16(in[2], in[3]);
    word.z = vp_pack_bf16(in[4], in[5]);
    word.w = vp_pack_bf16(in[6], in[7]);
    return word;
}

VP_FN float vp_sigmoid(float x) { return VP_RCP(1.0f + VP_EXP2(x * -1.44269504f)); }
VP_FN float vp_silu(float x) { return x * vp_sigmoid(x); }

/* The tanh form: 0.5 x (1 + tanh u) is x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
VP_FN float vp_gelu(float x) { return x * vp_sigmoid(1.59576912f * (x + 0.044715f * x * x * x)); }

/* ---- FP8 ------------------------------------------------------------------------------------- */

#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define VP_FNUZ 1
#elif !defined(VP_FNUZ)
#define VP_FNUZ 0
#endif

#define VP_E4M3_BIAS (VP_FNUZ ? 8 : 7)
#define VP_E4M3_MAX (VP_FNUZ ? 240.0f : 448.0f)

/* The value of a code: sign, exponent and fraction moved to a float's places have an exponent that
 * is too small by the difference of the biases; the product puts that right, for subnormals too. */
VP_FN float vp_e4m3_value(vp_u32 code) {
    float value = vp_float_of(((code & 0x80u) << 24) | ((code & 0x7fu) << 20));
    vp_u32 nan = VP_FNUZ ? 0x80u : 0x7fu;
    vp_u32 seen = VP_FNUZ ? code : code & 0x7fu;

    value *= vp_float_of((vp_u32)(127 + 127 - VP_E4M3_BIAS) << 23);
    return seen == nan ? vp_float_of(0x7fc00000u) : value;
}

/* The nearest code, ties to even; too large values become the largest. */
VP_FN vp_u32 vp_e4m3_code(float value) {
    vp_u32 bits = vp_bits_of(value), sign = (bits >> 24) & 0x80u, size = bits & 0x7fffffffu;
    vp_u32 largest = VP_FNUZ ? 0x7fu : 0x7eu, code;
    /* The smallest normal number is 2^(1 - bias); below it codes are its 1/8ths. */
    vp_u32 smallest = (vp_u32)(127 + 1 - VP_E4M3_BIAS) << 23;

    if (size < smallest) {
        /* Adding 2^(24 - 1 - bias - 2) rounds to a multiple of 2^(1 - bias - 3). */
        float one = vp_float_of((vp_u32)(127 + 21 - VP_E4M3_BIAS) << 23);
        code = vp_bits_of(vp_float_of(size) + one) - vp_bits_of(one);
    } else {
        code = (size + 0x7ffffu + ((size >> 20) & 1u)) >> 20;
        code -= (vp_u32)(127 - VP_E4M3_BIAS) << 3;
        code = code > largest ? largest : code;
    }
    if (VP_FNUZ && code == 0)
        sign = 0; /* its only zero */
    return sign | code;
}

#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__) ||    \
    defined(__GFX12__)
#define VP_FP8_UNITS 1
typedef float vp_f32x2 __attribute__((ext_vector_type(2)));
VP_FN void vp_e4m3_decode4(vp_u32 codes, float *out) {
    vp_f32x2 low = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, false);
    vp_f32x2 high = __builtin_amdgcn_cvt_pk_f32_fp8((int)codes, true);

    out[0] = low.x;
    out[1] = low.y;
    out[2] = high.x;
    out[3] = high.y;
}
#else
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ >= 890
#define VP_FP8_UNITS 1
#else
#define VP_FP8_UNITS 0
#endif
#else
#define VP_FP8_UNITS 0
#endif
VP_FN void vp_e4m3_decode4(vp_u32 codes, float *out) {
    out[0] = vp_e4m3_value(codes & 0xffu);
    out[1] = vp_e4m3_value((codes >> 8) & 0xffu);
    out[2] = vp_e4m3_value((codes >> 16) & 0xffu);
    out[3] = vp_e4m3_value(codes >> 24);
}
#endif

/* Eight values from position 8 x index: bf16 (16 bytes) or E4M3 (8 bytes). */
VP_FN void vp_load8(VP_G const void *base, vp_u64 index, int fp8, float *out) {
    if (fp8) {
        struct vp_half codes = ((VP_G const struct vp_half *)base)[index];
        vp_e4m3_decode4(codes.x, out);
        vp_e4m3_decode4(codes.y, out + 4);
    } else {
        vp_unpack(((VP_G const struct vp_word *)base)[index], out);
    }
}

/* The sum over the lanes of a block, in every lane; `room`: a float per lane. The number of lanes
 * is a power of two. */
VP_FN float vp_block_sum(float value, VP_L float *room) {
    vp_u32 lane = VP_LANE, step;

    room[lane] = value;
    VP_BARRIER;
    for (step = VP_LANES / 2; step > 0; step /= 2) {
        if (lane < step)
            room[lane] += room[lane + step];
        VP_BARRIER;
    }
    value = room[0];
    VP_BARRIER;
    return value;
}
