# glibc's own use of hwprobe: the function it exports, and the copy it has chosen by it.
import ctypes
import time


class Pair(ctypes.Structure):
    _fields_ = [("key", ctypes.c_int64), ("value", ctypes.c_uint64)]


libc = ctypes.CDLL(None)
libc.__riscv_hwprobe.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint]
pairs = (Pair * 3)(Pair(4, 0), Pair(5, 0), Pair(99, 7))
error = libc.__riscv_hwprobe(pairs, 3, 0, None, 0)
names = {"FD": 0, "C": 1, "V": 2, "ZBA": 3, "ZBB": 4, "ZICBOZ": 6}
print(error, *(name for name, bit in names.items() if pairs[0].value >> bit & 1))
print("misaligned", pairs[1].value & 7, "unknown", pairs[2].key, pairs[2].value)
print("wrong flags", libc.__riscv_hwprobe(pairs, 1, 0, None, 2))

# From one misaligned place to another: by words it takes a third of the instructions. One is a nanosecond here.
size = 1 << 16
source, target = (ctypes.create_string_buffer(size + 16) for _ in range(2))


def copy():
    start = time.perf_counter_ns()
    libc.memcpy(ctypes.byref(target, 1), ctypes.byref(source, 3), ctypes.c_size_t(size))
    return time.perf_counter_ns() - start


print("memcpy by", "words" if min(copy() for _ in range(5)) < size * 3 // 4 else "bytes")
