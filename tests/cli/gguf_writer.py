"""Small GGUF files that end after their header: enough for a plan. Standard library only."""
import struct

U32, TEXT = 4, 8
F32, Q8_0 = 0, 8


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def key(name, value):
    if isinstance(value, str):
        return text(name) + struct.pack("<I", TEXT) + text(value)
    return text(name) + struct.pack("<II", U32, value)


def size(kind, ne):
    count = 1
    for n in ne:
        count *= n
    return count // 32 * 34 if kind == Q8_0 else count * 4


def write(path, layers=16, hidden=2048, width=8192, heads=16, kv_heads=4, vocab=32000,
          context=32768, experts=0):
    """A Llama of these sizes in q8_0; with experts: as many per layer, two of them used."""
    keys = [key("general.architecture", "llama"), key("llama.block_count", layers),
            key("llama.context_length", context), key("llama.embedding_length", hidden),
            key("llama.feed_forward_length", width), key("llama.attention.head_count", heads),
            key("llama.attention.head_count_kv", kv_heads), key("llama.vocab_size", vocab)]
    if experts:
        keys += [key("llama.expert_count", experts), key("llama.expert_used_count", 2)]
    kv = hidden * kv_heads // heads
    tensors = [("token_embd", Q8_0, (hidden, vocab))]
    for i in range(layers):
        tensors += [("blk.%d.%s" % (i, name), kind, ne) for name, kind, ne in (
            ("attn_norm", F32, (hidden,)), ("attn_q", Q8_0, (hidden, hidden)),
            ("attn_k", Q8_0, (hidden, kv)), ("attn_v", Q8_0, (hidden, kv)),
            ("attn_output", Q8_0, (hidden, hidden)), ("ffn_norm", F32, (hidden,)))]
        if experts:
            tensors += [("blk.%d.ffn_gate_inp" % i, F32, (hidden, experts))]
        end, more = ("_exps", (experts,)) if experts else ("", ())
        tensors += [("blk.%d.ffn_%s%s" % (i, name, end), Q8_0, ne + more) for name, ne in (
            ("gate", (hidden, width)), ("up", (hidden, width)), ("down", (width, hidden)))]
    tensors += [("output_norm", F32, (hidden,)), ("output", Q8_0, (hidden, vocab))]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    offset = 0
    for name, kind, ne in tensors:
        out += text(name + ".weight") + struct.pack("<I", len(ne))
        out += struct.pack("<%dQ" % len(ne), *ne) + struct.pack("<IQ", kind, offset)
        offset += (size(kind, ne) + 31) // 32 * 32
    with open(path, "wb") as f:
        f.write(out)
