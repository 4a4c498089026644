"""The process in a box in which a stranger's model file is loaded and called.

Started by `box.py` as `python -I`, with the arguments CONTROL limited|trusted
[RUNTIME MAJOR MINOR]`: with the emulator's runtime and the compute capability that it poses with,
or else for a card. It imports PyTorch, and then forks when it is asked to: each fork serves one
connection, and never more than one file. Messages are those of `framing.py`:

    {"do": "load", "text", "mode"}: plain, trusted, kernels off, library off      {"new": bool}
    {"do": "make", "arguments", "seed"}              {"parameters": [[name, shape, type]]}, values
    {"do": "calls", "made", "calls": [...]}, values  {"results": [...]}, values; {"do": "after"}
                                                     {"changed": [...], "left": [...]}
    {"do": "clock", "made", "size", "calls", ...}, an open file that stands for memory           {}
    {"do": "release"}                                                                            {}
    {"do": "kernels", "made", "shapes"}                                     {"kernels": [name, ...]}
    and meanwhile, the other way: {"build": what load_inline was given}

What this process says of itself is worth no more than a hint: a file that it has loaded can say it
in its place. A judge compares bytes, and what is told here can fail a file, never pass one.
"""

import atexit
import builtins
import contextlib
import ctypes
import gc
import importlib.machinery
import importlib.util
import inspect
import linecache
import math
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
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.testing
from torch import Tensor

from . import framing, lockdown, machine


def _import_extensions() -> types.ModuleType:
    """It asks at once whether there is a card. That starts CUDA, which no fork could use then."""
    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: True
    found = importlib.import_module("torch.utils.cpp_extension")
    torch.cuda.is_available = asked
    return found


cpp_extension = _import_extensions()
Blobs = list[bytes]
Sources = str | Sequence[str] | None
Shape = Sequence[int]
TEXT = 2000  # characters of an exception
NAMES = 100  # of kernels
POISON = 0x7F  # of every byte of fresh memory: a float of 3.39e38
# Taken before a file is loaded, which may put others in their places.
_grad, _frombuffer = torch.autograd.grad, torch.frombuffer
_Base = torch._C.TensorBase
_copy_, _detach, _pointer = _Base.copy_, _Base.detach, _Base.data_ptr
_contiguous, _cpu = _Base.contiguous, _Base.cpu
_set_data = _Base.data.__set__  # type: ignore[attr-defined]  # of a class it is a descriptor
_changed = torch.autograd.graph.increment_version
_zeros_like = torch.zeros_like
_no_grad, _enable_grad, _seed = torch.no_grad, torch.enable_grad, torch.manual_seed
_plain, _string_at, _exit = torch._C.DisableTorchFunction, ctypes.string_at, os._exit


# --- what a file may not change

_CLASSES = "torch.Tensor", "torch.nn.Module", "torch.cuda.Event", "torch.cuda.Stream"
_MODULES = {
    "torch": torch,
    "torch.nn.functional": torch.nn.functional,
    "torch.cuda": torch.cuda,
    "torch.autograd": torch.autograd,
    "torch.testing": torch.testing,
    "torch.utils.cpp_extension": cpp_extension,
    "time": time,
    "builtins": builtins,
    "os": os,
    "ctypes": ctypes,
    "gc": gc,
    "signal": signal,
    "socket": socket,
    "struct": struct,
    "threading": threading,
    "framing": framing,
    "lockdown": lockdown,
    "machine": machine,
    "__main__": sys.modules["__main__"],
}
_SYS = "stdout stderr stdin excepthook exit modules settrace setprofile".split()


def _names() -> dict[str, object]:
    found: dict[str, object] = {}
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

    def __init__(self, own: tuple[str, ...]):
        """`own`: how the names of threads begin that are nobody's but the machine's."""
        self.names, self.settings, self.tasks, self.own = _names(), _settings(), _tasks(), own

    def changed(self) -> list[str]:
        """Names of what was put in another's place, and of settings that were changed."""
        now = _names()
        found = [name for name, was in self.names.items() if now.get(name) is not was]
        given = _settings()
        return found + [name for name, was in self.settings.items() if given[name] != was]

    def left(self) -> list[str]:
        """Names of threads that were left behind."""
        time.sleep(0.01)
        found = set(_tasks().values()) - set(self.tasks.values())
        return sorted(name for name in found if not name.startswith(self.own)) + [
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

    def __init__(self, channel: framing.Channel, on: machine.Emulated | machine.Card):
        self.channel, self.machine = channel, on
        self.models: list[torch.nn.Module] = []
        self.inputs: dict[tuple[int, tuple[int, ...]], Tensor] = {}
        self.module, self.mode = types.ModuleType("model"), "plain"

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while command := self.channel.command():
            try:
                told, values = getattr(self, command.pop("do"))(command.pop("blobs"), **command)
            except BaseException as error:  # also SystemExit
                told = {"error": type(error).__name__, "text": str(error)[:TEXT]}
                values = []
            self.channel.tell(told, values)

    def load(self, blobs: Blobs, text: str, mode: str) -> framing.Message:
        """Run the file's text as a module."""
        self.mode = mode
        vars(cpp_extension).update(load_inline=self.load_inline, load=_refuse)
        self.machine.begin()
        if "torch.library" in text or "torch.compile" in text:
            importlib.import_module("torch._dynamo")  # as they do: it patches a few itself
        self.surroundings = Surroundings(self.machine.threads)
        if mode == "library off":
            self.switched = self.machine.library_off()
        self.module.__file__ = "model.py"
        sys.modules["model"] = self.module
        linecache.cache["model.py"] = len(text), None, text.splitlines(True), "model.py"
        exec(compile(text, "model.py", "exec"), self.module.__dict__)
        return {"new": isinstance(getattr(self.module, "ModelNew", None), type)}, []

    def load_inline(
        self,
        name: str,
        cpp_sources: Sources,
        cuda_sources: Sources = None,
        functions: Sources = None,
        **how: Any,
    ) -> types.ModuleType:
        """In PyTorch's place: the judge builds it."""
        flags = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")
        lists = {"cpp": cpp_sources, "cuda": cuda_sources, "functions": functions}
        lists |= {flag: how.get(flag) for flag in flags}
        wanted = {key: [v] if isinstance(v, str) else list(v or []) for key, v in lists.items()}
        bare = bool(how.get("no_implicit_headers"))
        self.channel.tell({"build": {**wanted, "module": name, "bare": bare}})
        built = self.channel.command() or {"error": "Gone", "text": "nobody builds it any more"}
        if "error" in built:
            raise RuntimeError(f"Error building extension '{name}': {built['text']}")
        file = os.memfd_create(name)
        os.write(file, built["blobs"][0])
        path = f"/proc/self/fd/{file}"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_loader(name, loader)
        assert spec  # a loader of a file has one
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        self.machine.loaded(path)
        sys.modules[name] = module
        return module

    def make(
        self, blobs: Blobs, arguments: list[Any], seed: int, values: bool = True
    ) -> framing.Message:
        """A ModelNew; tells of its parameters, with their values where they are wanted."""
        _seed(seed)
        with _enable_grad():
            made: torch.nn.Module = self.module.ModelNew(*_tuples(arguments))
        model = self.machine.on(made)
        self.models.append(model)
        named = list(model.named_parameters())
        told = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
        return {"parameters": told}, [_bytes(p) for _, p in named] if values else []

    def calls(self, blobs: Blobs, made: int, calls: list[dict[str, Any]]) -> framing.Message:
        """Call a model again and again, each time with new contents in the same tensors. Nothing is
        told before the last call: what came of the first one must have stayed as it was."""
        model, rest = self.models[made], iter(blobs)
        results, values, outputs = [], [], []
        for call in calls:
            parameters = [p for _, p in model.named_parameters()]
            with _plain(), _no_grad():
                for parameter in parameters:
                    _copy_(parameter, self._tensor(next(rest), parameter.shape))
                inputs = [self._input(next(rest), i, s) for i, s in enumerate(call["shapes"])]
            told, output, grads = self._call(model, inputs, parameters, next(rest), call["train"])
            results.append(told)
            told["grads"] = [grad is not None for grad in grads]
            with _plain():
                found = [output, *inputs, *parameters, *(g for g in grads if g is not None)]
                values += [_bytes(tensor) for tensor in found]
            outputs.append(output)
        with _plain():
            values += [_bytes(output) for output in outputs]
        return {"results": results}, values

    def _call(
        self,
        model: torch.nn.Module,
        inputs: list[Tensor],
        parameters: list[torch.nn.Parameter],
        grad_output: bytes,
        train: bool,
    ) -> tuple[dict[str, Any], Tensor, Sequence[Tensor | None]]:
        if self.mode == "kernels off":
            self.machine.kernels_off()
        grads: Sequence[Tensor | None] = []
        if not train:
            with _no_grad():
                output = model(*inputs)
        else:
            inputs = [_detach(tensor).requires_grad_() for tensor in inputs]
            output = model(*inputs)
            grads = [None] * (len(inputs) + len(parameters))
            if grad_output and type(output) is Tensor and output.requires_grad:
                given = self._tensor(grad_output, output.shape)
                grads = _grad(output, [*inputs, *parameters], given, allow_unused=True)
        told: framing.Header = {"error": self.machine.error()}
        told["kind"] = f"{type(output).__module__}.{type(output).__qualname__}"
        if not isinstance(output, Tensor):
            raise TypeError(f"forward returned {type(output).__name__}, not a tensor")
        told |= {"shape": list(output.shape), "trains": bool(output.requires_grad)}
        told["type"] = str(output.dtype).removeprefix("torch.")
        return told, output, grads

    def _input(self, blob: bytes, number: int, shape: Shape) -> Tensor:
        key = number, tuple(shape)
        fresh = self._tensor(blob, shape)
        if key not in self.inputs:
            self.inputs[key] = fresh
        return _copy_(self.inputs[key], fresh)

    def _tensor(self, blob: bytes, shape: Shape) -> Tensor:
        flat = _frombuffer(bytearray(blob), dtype=torch.float32)
        return self.machine.on(flat.reshape(tuple(shape)).clone())

    def clock(
        self,
        blobs: Blobs,
        file: int,
        made: int,
        size: int,
        calls: list[list[int]],
        shapes: list[Shape],
        idle: bool,
    ) -> framing.Message:
        """Call a model on what is in memory that is handed over now, and leave the outputs there.

        Each call has inputs, parameters and an output of its own, of these `shapes`, and offsets of
        them. `idle`: all but calling the model. Whoever asks for it has the clock.
        """
        model = self.models[made]
        parameters = list(model.parameters())
        with _plain(), _no_grad():
            floats = self.machine.borrow(file, size)
            placed = [
                [floats(at, math.prod(s)).view(s) for at, s in zip(call, shapes, strict=True)]
                for call in calls
            ]
            spare = _zeros_like(placed[0][-1])
        os.close(file)
        count = len(shapes) - 1 - len(parameters)
        with _no_grad():
            for tensors in placed:
                inputs, state, there = tensors[:count], tensors[count:-1], tensors[-1]
                with _plain():
                    for parameter, tensor in zip(parameters, state, strict=True):
                        _set_data(parameter, tensor)
                    _changed(parameters)
                output = spare if idle else model(*inputs)
                with _plain():
                    _copy_(there, output)
        self.machine.wait()
        return {}, []

    def kernels(self, blobs: Blobs, made: int, shapes: list[Shape]) -> framing.Message:
        """The names of the kernels of a call, in their order: for whoever would like to know."""
        inputs = [self.machine.on(torch.rand(shape)) for shape in shapes]
        with _no_grad():
            return {"kernels": self.machine.kernels(lambda: self.models[made](*inputs))[:NAMES]}, []

    def release(self, blobs: Blobs) -> framing.Message:
        """Use no memory any more that was handed over; who is judged is not asked to."""
        with _plain(), _no_grad():
            for model in self.models:
                for parameter in model.parameters():
                    _set_data(parameter, self.machine.on(torch.empty(1)).expand(parameter.shape))
        self.machine.give_back()
        return {}, []

    def after(self, blobs: Blobs) -> framing.Message:
        """What the file has changed in its process, and what it has left behind."""
        return {"changed": self.surroundings.changed(), "left": self.surroundings.left()}, []


def _refuse(*args: object, **kwargs: object) -> None:
    raise RuntimeError("a model is one file: it compiles its CUDA by load_inline")


def _tuples(value: Iterable[Any]) -> list[Any]:
    """What JSON has made lists of: shapes."""
    return [tuple(part) if isinstance(part, list) else part for part in value]


def _bytes(tensor: Tensor) -> bytes:
    tensor = _cpu(_contiguous(_detach(tensor)))
    size = tensor.numel() * tensor.element_size()
    return _string_at(_pointer(tensor), size) if size else b""


def main() -> None:
    """Fork when asked to, one process after the other, and tell how each has ended."""
    control, limited = socket.socket(fileno=int(sys.argv[1])), sys.argv[2] == "limited"
    runtime, *capability = sys.argv[3:] or [""]
    major, minor = map(int, capability or (0, 0))
    torch.set_num_threads(1)
    warm()
    control.send(b"r")
    while True:
        message, files, *_ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        if not (pid := os.fork()):
            control.close()
            give_up(limited, runtime)
            on = machine.Emulated(runtime, (major, minor)) if runtime else machine.Card()
            Session(framing.Channel(files[0]), on).serve()
            _exit(0)
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.send(struct.pack("<i", status))


def warm() -> None:
    """What PyTorch looks up once, in files that a fork cannot read."""
    tempfile.tempdir = "/tmp"
    # torch.library wants it to be there
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.tempdir)
    narrow = torch.ones(2, 2, dtype=torch.bfloat16)
    torch.mm(narrow, narrow), narrow.float().half()


def give_up(limited: bool, runtime: str) -> None:
    """In a fork: what a file does not need.

    A driver opens devices, maps memory and starts threads as it sees fit: with a card, the box and
    the limits alone hold.
    """
    if runtime:
        ctypes.CDLL(None).mallopt(-6, POISON ^ 0xFF)  # M_PERTURB
    if limited:
        lockdown.limit(lockdown.MAX_FILES if runtime else None)
    if limited and runtime:
        lockdown.lock_in([os.path.dirname(runtime), os.path.dirname(os.path.abspath(__file__))])


if __name__ == "__main__":
    main()
