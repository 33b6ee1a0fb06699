"""A reader of GGUF headers that shares nothing with the program's: the keys and the tensors of a
file, read at once into memory. Standard library only."""
import struct

# id: (elements, bytes) of a block, from ggml's own definitions
BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
    40: (64, 36), 41: (128, 18), 42: (64, 18)}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
TEXT, ARRAY = 8, 9


class Cursor:
    def __init__(self, data):
        self.data, self.at, self.order = data, 4, "<"
        if self.take("I") not in (2, 3):
            self.at, self.order = 4, ">"
            assert self.take("I") in (2, 3)

    def take(self, code):
        value = struct.unpack_from(self.order + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == TEXT:
            return self.text()
        if kind == ARRAY:
            kind, n = self.take("I"), self.take("Q")
            return [self.value(kind) for _ in range(n)]
        return self.take(SCALARS[kind])


def read(path):
    """(keys, [(name, dimensions, type id, bytes)])"""
    with open(path, "rb") as f:
        c = Cursor(f.read())
    assert c.data[:4] == b"GGUF"
    tensor_count, key_count = c.take("Q"), c.take("Q")
    keys, tensors = {}, []
    for _ in range(key_count):
        name = c.text()
        keys[name] = c.value(c.take("I"))
    for _ in range(tensor_count):
        name = c.text()
        dims = [c.take("Q") for _ in range(c.take("I"))]
        kind, _ = c.take("I"), c.take("Q")
        elements, size = BLOCKS[kind]
        rows = 1
        for n in dims[1:]:
            rows *= n
        tensors.append((name, dims, kind, dims[0] // elements * size * rows))
    return keys, tensors


def elements(tensors):
    total = 0
    for _, dims, _, _ in tensors:
        n = 1
        for d in dims:
            n *= d
        total += n
    return total
