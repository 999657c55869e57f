"""Small vocabularies for the fixtures of tests/fixtures/tokenizer, trained on the strings of
tokenizer_corpus.py: of pieces with scores, as SentencePiece has, or of merges with escaped spaces,
as Gemma 4 has. Deterministic."""
import collections

import gguf

from tokenizer_corpus import corpus

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
N_MERGES = 500
LONGEST_STRING = 150

SPECIALS = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<|endoftext|>", CONTROL),
            ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<think>", USER_DEFINED),
            ("\n\n", USER_DEFINED), ("    ", USER_DEFINED)]
SPACE = "\u2581"
# Characters outside it fall back to bytes.
ALPHABET = SPACE + "".join(chr(c) for c in range(0x21, 0x7F)) + "\u00e9\u4e2d\u0434\u0301\U0001f600"


def _trained():
    """The characters, and the pairs that byte-pair encoding joins, the commonest first."""
    words = [list(text.replace(" ", SPACE)) for text in corpus()
             if len(text) <= LONGEST_STRING and "<" not in text]
    merges = []
    while len(merges) < N_MERGES:
        counts = collections.Counter()
        for word in words:
            counts.update(pair for pair in zip(word, word[1:]) if set("".join(pair)) <= set(ALPHABET))
        pair = min(counts, key=lambda p: (-counts[p], p))
        merges.append(pair)
        for word in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == pair:
                    word[i:i + 2] = ["".join(pair)]
                i += 1
    return list(ALPHABET), merges


def vocabulary(model, **more):
    """What a model file would say, by the names of the format without their prefix."""
    characters, merges = _trained()
    joined = list(dict.fromkeys("".join(pair) for pair in merges))
    byte_tokens = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    tokens = SPECIALS + byte_tokens + [(piece, NORMAL) for piece in joined + characters]
    n_first = len(SPECIALS) + len(byte_tokens)
    out = {"model": model, "tokens": [t for t, _ in tokens], "token_type": [k for _, k in tokens]}
    if model == "llama":
        out["scores"] = [0.0] * n_first + [-float(i) for i in range(len(tokens) - n_first)]
    else:
        out["merges"] = [" ".join(pair) for pair in merges]
    return out | {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0} | more


def write_gguf(vocabulary, name, path):
    """A file of the vocabulary alone."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.name", name)
    writers = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32,
               list: writer.add_array}
    for key, value in vocabulary.items():
        writers[type(value)](f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
