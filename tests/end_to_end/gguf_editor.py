"""Takes a GGUF file apart and puts it together again with mistakes in it."""

import struct

STRING, ARRAY, UINT32 = 8, 9, 4
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def align(n, to):
    return (n + to - 1) // to * to


class Gguf:
    """metadata: [key, type, raw value]; tensors: [name, dims, type, offset]."""

    def __init__(self, content):
        self.at = 0
        self.content = content
        assert self.take("4s") == b"GGUF"
        self.version = self.take("I")
        n_tensors, n_metadata = self.take("Q"), self.take("Q")
        self.metadata = [self.take_metadata() for _ in range(n_metadata)]
        self.tensors = [self.take_tensor() for _ in range(n_tensors)]
        self.header_bytes = self.at
        self.data = content[align(self.at, 32):]

    def take(self, what):
        (value,) = struct.unpack_from("<" + what, self.content, self.at)
        self.at += struct.calcsize("<" + what)
        return value

    def take_string(self):
        return self.take(f"{self.take('Q')}s")

    def skip_value(self, kind):
        if kind == STRING:
            self.take_string()
        elif kind == ARRAY:
            element, count = self.take("I"), self.take("Q")
            for _ in range(count):
                self.skip_value(element)
        else:
            self.at += SCALAR_BYTES[kind]

    def take_metadata(self):
        key, kind = self.take_string(), self.take("I")
        begin = self.at
        self.skip_value(kind)
        return [key, kind, self.content[begin:self.at]]

    def take_tensor(self):
        name = self.take_string()
        dims = [self.take("Q") for _ in range(self.take("I"))]
        return [name, dims, self.take("I"), self.take("Q")]

    def find(self, key):
        return next(row for row in self.metadata if row[0] == key.encode())

    def set(self, key, kind, raw):
        self.find(key)[1:] = [kind, raw]

    def drop(self, key):
        self.metadata.remove(self.find(key))

    def tensor(self, name):
        return next(row for row in self.tensors if row[0] == name.encode())

    def bytes(self, n_tensors=None, n_metadata=None):
        """The file; counts other than the true ones are lies."""
        out = b"GGUF" + struct.pack("<IQQ", self.version,
                                    len(self.tensors) if n_tensors is None else n_tensors,
                                    len(self.metadata) if n_metadata is None else n_metadata)
        for key, kind, raw in self.metadata:
            out += string(key) + struct.pack("<I", kind) + raw
        for name, dims, kind, offset in self.tensors:
            out += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        return out + bytes(align(len(out), 32) - len(out)) + self.data
