"""The process in a box in which a stranger's model file is loaded and called.

Started by `model_box.py` as `python -I model_main.py CONTROL RUNTIME`. It imports PyTorch, and
then forks when it is asked to: each fork serves one connection, and never more than one file.
Messages are those of `wire.py`:

    {"do": "load", "text", "mode", "capability"}                           {"new": bool}
    {"do": "make", "arguments", "seed"}              {"parameters": [[name, shape, type]]}, values
    {"do": "calls", "made", "calls": [...]}, values  {"results": [...]}, values; {"do": "after"}
                                                     {"changed": [...], "left": [...]}
    and meanwhile, the other way: {"build": what load_inline was given}

What this process says of itself is worth no more than a hint: a file that it has loaded can say it
in its place. A judge compares bytes, and what is told here can fail a file, never pass one.
"""

import atexit
import builtins
import contextlib
import ctypes
import functools
import gc
import importlib.machinery
import importlib.util
import inspect
import linecache
import operator
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import types

import torch
import torch.testing
import torch.utils.cpp_extension
from torch.overrides import TorchFunctionMode

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # which -I leaves out
import confine
import wire

del sys.path[0]

TEXT = 2000  # characters of an exception
POISON = 0x7F  # of every byte of fresh memory: a float of 3.39e38
# What PyTorch computes that is more than a product, a sum of two tensors, a copy or a view.
OWN = """native_group_norm native_layer_norm native_batch_norm silu mish sigmoid tanh softplus
    hardtanh clamp clamp.Tensor clamp_min clamp_max leaky_relu relu gelu elu exp log log1p sqrt
    rsqrt pow.Tensor_Scalar reciprocal div.Tensor var.correction var_mean.correction
    std.correction mean mean.dim sum sum.dim_IntList min min.dim max max.dim amin amax softmax
    _softmax std_mean.correction aminmax minimum maximum where.self""".split()
_IN_PLACE = "silu_ mish_ sigmoid_ tanh_ hardtanh_ clamp_ leaky_relu_ relu_ exp_ sqrt_ div_.Tensor"

# Taken before a file is loaded, which may put others in their places.
_grad, _frombuffer = torch.autograd.grad, torch.frombuffer
_Base = torch._C.TensorBase
_copy_, _detach, _pointer = _Base.copy_, _Base.detach, _Base.data_ptr
_contiguous, _cpu = _Base.contiguous, _Base.cpu
_no_grad, _enable_grad, _seed = torch.no_grad, torch.enable_grad, torch.manual_seed
_plain, _string_at, _exit = torch._C.DisableTorchFunction, ctypes.string_at, os._exit


class Posing(TorchFunctionMode):
    """The CPU's tensors say that they are a card's, as those are that the emulator works on."""

    card = torch.device("cuda", 0)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        name = getattr(function, "__name__", "")
        if name == "__get__":
            owner = getattr(getattr(function, "__self__", None), "__name__", "")
            if owner == "is_cuda":
                return True
            if owner == "is_cpu":
                return False
            if owner == "device":
                return self.card
        if name in ("cuda", "record_stream", "pin_memory"):
            return args[0]
        if name == "numpy":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if name == "get_device":
            return 0
        return function(*(_on_cpu(value) for value in args), **kwargs)


def _on_cpu(value):
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


class Stream:
    """A stream, or an event, of a card that is none: all is done when a call returns."""

    cuda_stream = 0
    device = Posing.card

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return None

    def __getattr__(self, name: str):
        return lambda *args, **kwargs: None

    def query(self) -> bool:
        """Whether what was asked for is done."""
        return True

    def elapsed_time(self, other) -> float:
        """Nothing is measured here."""
        return 0.0

    def record_event(self, event=None):
        """An event behind what was asked for."""
        return event or Stream()


def pose(capability: tuple[int, int]) -> None:
    """Let torch.cuda answer as if there were a card of that compute capability."""
    major, minor = capability
    properties = types.SimpleNamespace(
        name="emulator", major=major, minor=minor, multi_processor_count=4, warp_size=32
    )
    for name, answer in {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": capability,
        "get_device_name": "emulator",
        "get_device_properties": properties,
        "synchronize": None,
        "empty_cache": None,
        "set_device": None,
        "init": None,
    }.items():
        setattr(torch.cuda, name, lambda *args, _answer=answer, **kwargs: _answer)
    for name in ("Stream", "Event", "stream", "device", "current_stream", "default_stream"):
        setattr(torch.cuda, name, Stream)
    taken = torch.library.custom_op

    def custom_op(name, function=None, /, *, device_types=None, **how):
        return taken(name, function, **how)  # for a card alone, it would not be for the CPU

    torch.library.custom_op = custom_op


# --- what a file may not change

_CLASSES = "torch.Tensor", "torch.nn.Module", "torch.cuda.Event", "torch.cuda.Stream"
_MODULES = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.cuda": torch.cuda,
    "torch.autograd": torch.autograd,
    "torch.testing": torch.testing,
    "torch.utils.cpp_extension": torch.utils.cpp_extension,
    "time": time,
    "builtins": builtins,
    "os": os,
    "ctypes": ctypes,
    "gc": gc,
    "signal": signal,
    "socket": socket,
    "struct": struct,
    "threading": threading,
    "wire": wire,
    "confine": confine,
    "__main__": sys.modules["__main__"],
}
_SYS = "stdout stderr stdin excepthook exit modules settrace setprofile".split()


def _names() -> dict[str, object]:
    found = {}
    for place, module in _MODULES.items():
        found |= {f"{place}.{name}": value for name, value in vars(module).items()}
    for place in _CLASSES:
        kind = operator.attrgetter(place.removeprefix("torch."))(torch)
        found |= {f"{place}.{name}": inspect.getattr_static(kind, name) for name in dir(kind)}
    return found | {f"sys.{name}": getattr(sys, name) for name in _SYS}


def _settings() -> dict[str, object]:
    return {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_default_device()": str(torch.get_default_device()),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "torch.is_autocast_enabled()": torch.is_autocast_enabled(),
        "torch.get_float32_matmul_precision()": torch.get_float32_matmul_precision(),
        "torch.backends.cuda.matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "torch.backends.cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "torch.are_deterministic_algorithms_enabled()": (
            torch.are_deterministic_algorithms_enabled()
        ),
        "torch.get_num_threads()": torch.get_num_threads(),
        "torch.is_anomaly_enabled()": torch.is_anomaly_enabled(),
        "gc.isenabled()": gc.isenabled(),
        "sys.meta_path": list(sys.meta_path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.gettrace()": sys.gettrace(),
        "sys.getprofile()": sys.getprofile(),
        "atexit": atexit._ncallbacks(),
        "os.environ": dict(os.environ),
        "handlers of signals": [signal.getsignal(n) for n in (signal.SIGALRM, signal.SIGTERM)],
    }


class Surroundings:
    """How a process was before a file was loaded into it."""

    def __init__(self):
        self.names, self.settings, self.tasks = _names(), _settings(), _tasks()

    def changed(self) -> list[str]:
        """Names of what was put in another's place, and of settings that were changed."""
        now = _names()
        found = [name for name, was in self.names.items() if now.get(name) is not was]
        given = _settings()
        return found + [name for name, was in self.settings.items() if given[name] != was]

    def left(self) -> list[str]:
        """Names of threads that were left behind."""
        time.sleep(0.01)
        return sorted(set(_tasks().values()) - set(self.tasks.values()) - {"emulator"}) + [
            thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
        ]


def _tasks() -> dict[str, str]:
    found = {}
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as file:
            found[task] = file.read().strip()
    return found


# --- one connection


class Session:
    """Serves a connection: loads a file, makes its models, calls them."""

    def __init__(self, connection: socket.socket, runtime: str):
        self.connection, self.read = connection, wire.reader(connection)
        self.runtime = ctypes.CDLL(runtime)
        self.models, self.inputs, self.module = [], {}, None
        self.mode = "plain"

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while message := wire.receive(self.read):
            header, blobs = message
            try:
                told, values = getattr(self, header.pop("do"))(blobs, **header)
            except BaseException as error:  # also SystemExit
                told = {"error": type(error).__name__, "text": str(error)[:TEXT]}
                values = []
            wire.send(self.connection, told, values)

    def load(self, blobs, text: str, mode: str, capability):
        """Run the file's text as a module."""
        self.mode = mode
        pose(tuple(capability))
        torch.utils.cpp_extension.load_inline = self.load_inline
        torch.utils.cpp_extension.load = _refuse
        Posing().__enter__()
        if "torch.library" in text or "torch.compile" in text:
            importlib.import_module("torch._dynamo")  # as they do: it patches a few itself
        self.surroundings = Surroundings()
        if mode == "library off":
            self.switched = _switch_off()
        self.module = types.ModuleType("model")
        self.module.__file__ = "model.py"
        sys.modules["model"] = self.module
        linecache.cache["model.py"] = len(text), None, text.splitlines(True), "model.py"
        exec(compile(text, "model.py", "exec"), self.module.__dict__)
        return {"new": isinstance(getattr(self.module, "ModelNew", None), type)}, []

    def load_inline(
        self, name, cpp_sources, cuda_sources=None, functions=None, **how
    ) -> types.ModuleType:
        """In PyTorch's place: the judge builds it, for the emulator."""
        texts = {
            key: [given] if isinstance(given, str) else list(given or [])
            for key, given in (("cpp", cpp_sources), ("cuda", cuda_sources))
        }
        functions = [functions] if isinstance(functions, str) else list(functions or [])
        wire.send(self.connection, {"build": {**texts, "functions": functions, "module": name}})
        header, blobs = wire.receive(self.read)
        if "error" in header:
            raise RuntimeError(f"Error building extension '{name}': {header['text']}")
        file = os.memfd_create(name)
        os.write(file, blobs[0])
        path = f"/proc/self/fd/{file}"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(module)
        sys.modules[name] = module
        return module

    def make(self, blobs, arguments, seed: int):
        """A ModelNew."""
        _seed(seed)
        with _enable_grad():
            model = self.module.ModelNew(*_tuples(arguments))
        self.models.append(model)
        named = list(model.named_parameters())
        told = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
        return {"parameters": told}, [_bytes(p) for _, p in named]

    def calls(self, blobs, made: int, calls):
        """Call a model again and again, each time with new contents in the same tensors. Nothing is
        told before the last call: what came of the first one must have stayed as it was."""
        model, blobs = self.models[made], iter(blobs)
        results, values, outputs = [], [], []
        for call in calls:
            parameters = [p for _, p in model.named_parameters()]
            with _plain(), _no_grad():
                for parameter in parameters:
                    _copy_(parameter, self._tensor(next(blobs), parameter.shape))
                inputs = [self._input(next(blobs), i, s) for i, s in enumerate(call["shapes"])]
            slope = next(blobs)
            told, output, grads = self._call(model, inputs, parameters, slope, call["train"])
            results.append(told)
            told["grads"] = [grad is not None for grad in grads]
            with _plain():
                found = [output, *inputs, *parameters, *(g for g in grads if g is not None)]
                values += [_bytes(tensor) for tensor in found]
            outputs.append(output)
        with _plain():
            values += [_bytes(output) for output in outputs]
        return {"results": results}, values

    def _call(self, model, inputs, parameters, slope: bytes, train: bool):
        if self.mode == "kernels off":
            self.runtime.emu_rehearse(1)
        if not train:
            with _no_grad():
                output = model(*inputs)
            grads = []
        else:
            inputs = [_detach(tensor).requires_grad_() for tensor in inputs]
            output = model(*inputs)
            grads = [None] * (len(inputs) + len(parameters))
            if slope and type(output) is torch.Tensor and output.requires_grad:
                slope = self._tensor(slope, output.shape)
                grads = _grad(output, [*inputs, *parameters], slope, allow_unused=True)
        error = self._error()
        told = {"kind": f"{type(output).__module__}.{type(output).__qualname__}", "error": error}
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"forward returned {type(output).__name__}, not a tensor")
        told |= {"shape": list(output.shape), "trains": bool(output.requires_grad)}
        told["type"] = str(output.dtype).removeprefix("torch.")
        return told, output, grads

    def _error(self) -> str:
        """What CUDA has to say of the launches; "" where all is well."""
        self.runtime.cudaGetErrorName.restype = ctypes.c_char_p
        error = self.runtime.cudaDeviceSynchronize() or self.runtime.cudaGetLastError()
        return self.runtime.cudaGetErrorName(error).decode() if error else ""

    def _input(self, blob: bytes, number: int, shape):
        key = number, tuple(shape)
        fresh = self._tensor(blob, shape)
        if key not in self.inputs:
            self.inputs[key] = fresh
        return _copy_(self.inputs[key], fresh)

    def _tensor(self, blob: bytes, shape):
        flat = _frombuffer(bytearray(blob), dtype=torch.float32)
        return flat.reshape(tuple(shape)).clone()

    def after(self, blobs):
        """What the file has changed in its process, and what it has left behind."""
        return {"changed": self.surroundings.changed(), "left": self.surroundings.left()}, []


def _refuse(*args, **kwargs):
    raise RuntimeError("a model is one file: it compiles its CUDA by load_inline")


def _tuples(value):
    """What JSON has made lists of: shapes."""
    return [tuple(part) if isinstance(part, list) else part for part in value]


def _bytes(tensor) -> bytes:
    tensor = _cpu(_contiguous(_detach(tensor)))
    size = tensor.numel() * tensor.element_size()
    return _string_at(_pointer(tensor), size) if size else b""


def _off(name: str, *args, **kwargs):
    raise RuntimeError(f"switched off: torch's own {name.partition('.')[0].strip('_')}")


def _switch_off() -> torch.library.Library:
    """Let PyTorch's own operations fail, but for products, sums of two tensors, copies, views."""
    library = torch.library.Library("aten", "IMPL")
    for name in (*OWN, *_IN_PLACE.split()):
        with contextlib.suppress(RuntimeError):
            library.impl(name, functools.partial(_off, name), "CPU")
    return library


def main() -> None:
    """Fork when asked to, one process after the other, and tell how each has ended."""
    control, runtime = socket.socket(fileno=int(sys.argv[1])), sys.argv[2]
    torch.set_num_threads(1)
    warm()
    control.send(b"r")
    while True:
        message, files, *_ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        if not (pid := os.fork()):
            control.close()
            serve(files[0], runtime)
        os.close(files[0])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.send(struct.pack("<i", status))


def warm() -> None:
    """What PyTorch looks up once, in files that a fork cannot read."""
    tempfile.tempdir = "/tmp"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.tempdir  # torch.library wants it to be there
    narrow = torch.ones(2, 2, dtype=torch.bfloat16)
    torch.mm(narrow, narrow), narrow.float().half()


def serve(file: int, runtime: str) -> None:
    """In a fork: give up what a file does not need, and answer."""
    libc = ctypes.CDLL(None)
    libc.mallopt(-6, POISON ^ 0xFF)  # M_PERTURB
    confine.limit()
    confine.lock_in([os.path.dirname(runtime), os.path.dirname(os.path.abspath(__file__))])
    Session(socket.socket(fileno=file), runtime).serve()
    _exit(0)


if __name__ == "__main__":
    main()
