"""Reads GGUF files whole, for tests of the commands that write them: metadata and tensors as bytes."""
import hashlib
import struct

NAMES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
         14: "Q6_K", 20: "IQ4_NL", 23: "IQ4_XS", 30: "BF16"}
BLOCKS = {"F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24),
          "Q8_0": (32, 34), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
          "IQ4_NL": (32, 18), "IQ4_XS": (256, 136)}
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


class GGUF:
    """metas: key -> bytes of type and value; tensors: name -> (type, dims, bytes), in order of the file."""

    def __init__(self, path):
        self.data, self.at = path.read_bytes(), 8
        assert self.data[:8] == b"GGUF" + struct.pack("<I", 3)
        n_tensors, n_metas = self.take("Q"), self.take("Q")
        self.metas = {self.string(): self.meta() for _ in range(n_metas)}
        heads = [(self.string(), [self.take("Q") for _ in range(self.take("I"))], NAMES[self.take("I")], self.take("Q"))
                 for _ in range(n_tensors)]
        begin = -(-self.at // 32) * 32
        assert all(offset % 32 == 0 for _, _, _, offset in heads)
        self.tensors = {name: (kind, dims, self.data[begin + offset:begin + offset + size_of(kind, dims)])
                        for name, dims, kind, offset in heads}
        assert all(len(t[2]) == size_of(t[0], t[1]) for t in self.tensors.values())

    def take(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            inner, n = self.take("I"), self.take("Q")
            for _ in range(n):
                self.skip(inner)
        else:
            self.at += SIZES[kind]

    def meta(self):
        begin = self.at
        self.skip(self.take("I"))
        return self.data[begin:self.at]


def size_of(kind, dims):
    numbers = 1
    for d in dims:
        numbers *= d
    length, size = BLOCKS[kind]
    return numbers // length * size


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def digests(gguf):
    """What two equal models have in common, in few bytes."""
    return {"metas": {k: digest(v) for k, v in gguf.metas.items()},
            "tensors": {k: f"{t} {'x'.join(map(str, d))} {digest(b)}" for k, (t, d, b) in gguf.tensors.items()}}
