"""Reads the head of a GGUF file: metadata and tensors, and from these what one generated token has to read from memory.

Takes a path, gives plain values; reads no weights. Only what the measurements need: files are the user's own, and a damaged one
ends in FormatError, not in a repair.
"""
import math
import os
import struct

# id: (name, values per block, bytes per block)
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 20: ("IQ4_NL", 32, 18), 23: ("IQ4_XS", 256, 136), 30: ("BF16", 1, 2),
}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
MOST = 1 << 28  # elements of an array, bytes of a string: beyond is damage


class FormatError(Exception):
    pass


class Reader:
    def __init__(self, file, path):
        self.file, self.path = file, path

    def take(self, form):
        size = struct.calcsize("<" + form)
        data = self.file.read(size)
        if len(data) != size:
            raise FormatError(f"{self.path}: ends inside its head")
        return struct.unpack("<" + form, data)[0]

    def length(self):
        n = self.take("Q")
        if n > MOST:
            raise FormatError(f"{self.path}: a length of {n} at {self.file.tell() - 8}")
        return n

    def string(self):
        data = self.file.read(n := self.length())
        if len(data) != n:
            raise FormatError(f"{self.path}: ends inside its head")
        return data.decode("utf-8", "replace")

    def value(self, kind):
        """Arrays of strings are skipped, as only vocabularies have them: they read as their length."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, n = self.take("I"), self.length()
            if inner in SCALARS:
                return [self.take(SCALARS[inner]) for _ in range(n)]
            for _ in range(n):
                self.value(inner)
            return n
        if kind not in SCALARS:
            raise FormatError(f"{self.path}: metadata of type {kind}")
        return self.take(SCALARS[kind])


def read(path):
    """({key: value}, {tensor: (type name, shape, bytes)}); shape as in the file: the row's length first."""
    with open(path, "rb") as file:
        r = Reader(file, path)
        if file.read(4) != b"GGUF":
            raise FormatError(f"{path}: not a GGUF file")
        if (version := r.take("I")) not in (2, 3):
            raise FormatError(f"{path}: GGUF version {version}, expected 2 or 3")
        n_tensors, n_keys = r.length(), r.length()
        keys = {}
        for _ in range(n_keys):
            name = r.string()
            keys[name] = r.value(r.take("I"))
        tensors = {}
        for _ in range(n_tensors):
            name = r.string()
            shape = [r.take("Q") for _ in range(r.take("I"))]
            kind = r.take("I")
            r.take("Q")
            if kind not in TYPES:
                raise FormatError(f"{path}: tensor {name} has type {kind}, which is not known here")
            type_name, values, size = TYPES[kind]
            tensors[name] = (type_name, shape, math.prod(shape) // values * size)
    return keys, tensors


def raw_keys(path, prefix):
    """[bytes]: the entries of the metadata whose name begins with `prefix`, as they stand in the file."""
    found = []
    with open(path, "rb") as file:
        r = Reader(file, path)
        if file.read(4) != b"GGUF":
            raise FormatError(f"{path}: not a GGUF file")
        r.take("I")
        r.length()
        for _ in range(r.length()):
            start = file.tell()
            name = r.string()
            r.value(r.take("I"))
            if name.startswith(prefix):
                end = file.tell()
                file.seek(start)
                found.append(file.read(end - start))
    return found


def is_read_whole(name, layers, shared):
    """Whether every token reads all of a tensor; layers that share keys and values do not use their own projections of them."""
    if name in ("token_embd.weight", "per_layer_token_embd.weight", "rope_freqs.weight"):
        return False
    parts = name.split(".")
    if parts[0] == "blk" and parts[1].isdigit() and int(parts[1]) >= layers - shared:
        return parts[2] not in ("attn_k", "attn_v", "attn_k_norm", "attn_v_norm")
    return True


def token_bytes(keys, tensors):
    """Bytes of weights that one generated token reads: the head once, the experts that are used, one row of each embedding."""
    arch = keys.get("general.architecture", "")
    layers, shared = keys.get(f"{arch}.block_count", 0), keys.get(f"{arch}.attention.shared_kv_layers", 0)
    experts, used = keys.get(f"{arch}.expert_count", 0), keys.get(f"{arch}.expert_used_count", 0)
    total = 0
    for name, (_, shape, size) in tensors.items():
        if "_exps." in name and experts:
            total += size * used // experts
        elif is_read_whole(name, layers, shared):
            total += size
        elif name.endswith("token_embd.weight"):
            total += size // shape[-1]
    if "output.weight" not in tensors:
        total += tensors["token_embd.weight"][2]  # the head is the embedding
    return total


def token_bytes_of(path):
    if not os.path.isfile(path):
        raise FormatError(f"{path}: no such file")
    return token_bytes(*read(path))
