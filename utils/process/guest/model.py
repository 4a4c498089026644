"""The process in a box in which a stranger's model file is loaded and called.

Started by `box.py` as `python -I`, with the arguments CONTROL limited|trusted
[RUNTIME DEVICE MAJOR MINOR]`: with the emulator's runtime, PyTorch's device on it and the compute
capability that it poses with, or else for a card. It imports PyTorch, and then forks when it is
asked to: each fork serves one connection, and never more than one file. Messages are those of
`framing.py`:

    {"do": "load", "text", "mode", "work"}: plain, trusted, library off           {"new": bool}
    {"do": "make", "arguments", "seed"}   {"parameters": [[name, shape, type]], "buffers"}, values
    {"do": "copy", "made"}, {"do": "state", "made"}, values                      ..., values
    {"do": "calls", "calls": [...]}, values          {"results": [...], "hazards"}, values
    {"do": "reference", "text", "arguments", "seed", "shapes", ...}, values      {}, values
    {"do": "after"}                                  {"changed": [...], "left": [...]}
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
import copy
import ctypes
import gc
import importlib.machinery
import importlib.util
import inspect
import linecache
import math
import operator
import os
import secrets
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.testing
from torch import Tensor

from . import framing, lockdown, machine


def _import_extensions() -> types.ModuleType:
    """It asks at once whether there is a card. That starts CUDA, which no fork could use then."""
    is_available, torch.cuda.is_available = torch.cuda.is_available, lambda: True
    module = importlib.import_module("torch.utils.cpp_extension")
    torch.cuda.is_available = is_available
    return module


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
_Module = types.ModuleType
_NUMBERS = {"python float": float, "python int": int, "python bool": bool}
_HELD = {"python float": torch.float64, "python int": torch.int64, "python bool": torch.bool}
_no_grad, _enable_grad, _seed = torch.no_grad, torch.enable_grad, torch.manual_seed
_plain, _exit = torch._C.DisableTorchFunction, os._exit
# The kinds of tensor that a forward may return, and no class that calls itself so.
_Parameter, _set_mode, _float = torch.nn.Parameter, torch.nn.Module.train, torch.float32
_KINDS: dict[type, str] = {torch.Tensor: "torch.Tensor", _Parameter: "torch.nn.parameter.Parameter"}
_REFUSED = frozenset(
    "ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle ctypes.cdata gc.get_objects gc.get_referrers "
    "ctypes.string_at ctypes.wstring_at ctypes.call_function ctypes.cdata/buffer".split()
)


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
# Of the environment, what files set for builds that are not theirs to make here.
_FOR_BUILDS = "TORCH_CUDA_ARCH_LIST MAX_JOBS CUDA_HOME CUDA_LAUNCH_BLOCKING TORCH_EXTENSIONS_DIR"
_HOOKS = [
    value
    for name, value in vars(torch.nn.modules.module).items()
    if name.startswith("_global_") and isinstance(value, dict)
]
_SYS = "stdout stderr stdin excepthook exit modules settrace setprofile".split()


def _names() -> dict[str, object]:
    names: dict[str, object] = {}
    for place, module in _MODULES.items():
        names |= {f"{place}.{name}": value for name, value in vars(module).items()}
    for place in _CLASSES:
        kind = operator.attrgetter(place.removeprefix("torch."))(torch)
        names |= {f"{place}.{name}": inspect.getattr_static(kind, name) for name in dir(kind)}
    for kind in (Session, machine.Emulated, machine.Card, framing.Channel):
        names |= {f"{kind.__qualname__}.{n}": v for n, v in vars(kind).items() if n != "clock"}
    return names | {f"sys.{name}": getattr(sys, name) for name in _SYS}


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
        "os.environ": {n: v for n, v in os.environ.items() if n not in _FOR_BUILDS.split()},
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "hooks of all modules": sum(len(hooks) for hooks in _HOOKS),
        "timers": [signal.getitimer(which) for which in (0, 1, 2)],
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
        names = [name for name, was in self.names.items() if now.get(name) is not was]
        settings = _settings()
        return names + [name for name, was in self.settings.items() if settings[name] != was]

    def left(self) -> list[str]:
        """Names of threads that were left behind."""
        time.sleep(0.01)
        tasks = set(_tasks().values()) - set(self.tasks.values())
        return sorted(name for name in tasks if not name.startswith(self.own)) + [
            thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
        ]


def _tasks() -> dict[str, str]:
    tasks = {}
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/comm") as file:
            tasks[task] = file.read().strip()
    return tasks


# --- one connection


class NotATensor(TypeError):
    """What a forward has returned."""


class Session:
    """Serves a connection: loads a file, makes its models, calls them."""

    def __init__(self, channel: framing.Channel, on: machine.Emulated | machine.Card):
        self.channel, self.machine = channel, on
        self.models: list[torch.nn.Module] = []
        self.inputs: dict[tuple[object, ...], Tensor] = {}
        self.module = types.ModuleType("model")
        self.built: dict[str, tuple[object, types.ModuleType]] = {}
        self.output = b""

    def serve(self) -> None:
        """Answer until the other side is gone."""
        while command := self.channel.command():
            try:
                reply, values = getattr(self, command.pop("do"))(command.pop("blobs"), **command)
            except BaseException as error:  # also SystemExit
                reply = {"error": type(error).__name__, "text": str(error)[:TEXT]}
                values = []
            self.channel.tell(reply, values)

    def load(
        self, blobs: Blobs, text: str, mode: str, work: dict[str, Any] | None = None
    ) -> framing.Message:
        """Run the file's text as a module. `work`: what PyTorch may do in a forward."""
        vars(cpp_extension).update(load_inline=self.load_inline, load=_refuse)
        self.machine.begin()
        if "torch.library" in text or "torch.compile" in text:
            importlib.import_module("torch._dynamo")  # as they do: it patches a few itself
        self.surroundings = Surroundings(self.machine.threads)
        if work:
            self.machine.allow(work["products"], work["count"], work["sums"])
        if mode == "library off":
            self.switched = self.machine.library_off()
        if self.machine.guarded:
            sys.addaudithook(_watch)
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
        request = {**wanted, "module": name, "bare": bare}
        if (known := self.built.get(name)) and known[0] == request:
            return known[1]  # as PyTorch does
        self.channel.tell({"build": request})
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
        self.built[name] = request, module
        return module

    def make(
        self, blobs: Blobs, arguments: list[Any], seed: int, values: bool = True
    ) -> framing.Message:
        """A ModelNew; tells of its parameters, with their values where they are wanted."""
        _seed(seed)
        with _enable_grad():
            made: torch.nn.Module = self.module.ModelNew(*_decoded(arguments))
        return self._made(self.machine.on(made), values)

    def copy(self, blobs: Blobs, made: int) -> framing.Message:
        """One more model: a deep copy of one that was made."""
        return self._made(copy.deepcopy(self.models[made]), values=False)

    def _made(self, model: torch.nn.Module, values: bool) -> framing.Message:
        self.models.append(model)
        named = list(_named(model))
        described = [[n, list(p.shape), str(p.dtype).removeprefix("torch.")] for n, p in named]
        header: framing.Header = {"parameters": described, "buffers": list(_buffers(model))}
        return header, [self._bytes(p) for _, p in named] if values else []

    def state(self, blobs: Blobs, made: int) -> framing.Message:
        """Load a state by nn.Module's own way; tells what the parameters are then, and what the
        model's own state_dict has of them."""
        model = self.models[made]
        named = list(_named(model))
        pairs = zip(named, blobs, strict=True)
        state = {n: self._tensor(b, p.shape, p.dtype) for (n, p), b in pairs}
        missing = model.load_state_dict(state, strict=False).unexpected_keys
        kept = model.state_dict()
        tensors = [*(p for _, p in named), *(kept[n] for n, _ in named)]
        return {"unexpected": list(missing)}, [self._bytes(_detach(tensor)) for tensor in tensors]

    def calls(self, blobs: Blobs, calls: list[dict[str, Any]]) -> framing.Message:
        """Call models, each time with new contents in the same tensors. Nothing is told before the
        last call: what came of the first one must have stayed as it was."""
        rest, results = iter(blobs), []
        values: Blobs = []
        made: list[list[Tensor]] = []
        for call in calls:
            header, tensors, outputs = self._one(call, rest)
            results.append(header)
            values += tensors
            made += [outputs] if outputs is not None else []
        with _plain():
            values += [b"".join(map(self._bytes, outputs)) for outputs in made]
        return {"results": results, "hazards": self.machine.hazards()}, values

    def _one(
        self, call: dict[str, Any], blobs: Iterator[bytes]
    ) -> tuple[framing.Header, Blobs, list[Tensor] | None]:
        """What is told of one call, the bytes of what came of it, and its outputs."""
        model = self.models[call["made"]]
        parameters = [p for _, p in _named(model)]
        with _plain(), _no_grad():
            for parameter in parameters:
                _copy_(parameter, self._tensor(next(blobs), parameter.shape, parameter.dtype))
            buffers = _buffers(model) if call["buffers"] else {}
            for name in call["buffers"]:
                _copy_(buffers[name], self._tensor(next(blobs), buffers[name].shape))
            strided = call["strided"]
            places = enumerate(zip(call["shapes"], call["types"], strict=True))
            inputs = [
                self._input(next(blobs), (call["made"], i), shape, kind, strided)
                for i, (shape, kind) in places
            ]
        grad_output = next(blobs)
        _set_mode(model, call["mode"])
        for number in call["frozen"]:
            parameters[number].requires_grad_(False)
        try:
            header, made, grads = self._call(model, inputs, parameters, grad_output, call)
        except BaseException as error:  # also SystemExit
            header = {"raised": type(error).__name__, "text": str(error)[:TEXT]}
            header |= {"refused": self.machine.refused(), "foreign": isinstance(error, NotATensor)}
            return header, [], None
        finally:
            for number in call["frozen"]:
                parameters[number].requires_grad_(True)
        header["grads"] = [grad is not None for grad in grads]
        with _plain():
            tensors = [*inputs, *parameters, *(g for g in grads if g is not None)]
            return header, [self.output, *(self._bytes(tensor) for tensor in tensors)], made

    def _call(
        self,
        model: torch.nn.Module,
        inputs: list[Tensor],
        parameters: list[torch.nn.Parameter],
        grad_output: bytes,
        call: dict[str, Any],
    ) -> tuple[framing.Header, list[Tensor], Sequence[Tensor | None]]:
        """What is told of a call, its outputs and its gradients; the outputs' bytes are kept."""
        train, idle = call["train"], call["idle"]
        if train:
            floats = [tensor.is_floating_point() and tensor.is_cuda for tensor in inputs]
            pairs = zip(inputs, floats, strict=True)
            inputs = [_detach(t).requires_grad_() if f else t for t, f in pairs]
        forward = self._forward if train else self._without_gradients
        typed = zip(inputs, call["types"], strict=True)
        arguments = [_NUMBERS[word](t.item()) if word in _NUMBERS else t for t, word in typed]
        outputs, kinds, several = self.machine.call(
            machine.FORWARD, idle, forward, model, arguments
        )
        self.output, refused = self.machine.kept(), self.machine.refused()
        if not all(kinds):
            said = ", ".join(type(one).__name__ for one in outputs)
            raise NotATensor(f"forward returned {said}, not a tensor")
        grads: Sequence[Tensor | None] = []
        graded = [output for output in outputs if output.requires_grad]
        if grad_output and graded and len(grad_output) == graded[0].nbytes:
            output = graded[0]
            wanted = [t for t in (*inputs, *parameters) if t.requires_grad]
            gradient = self._tensor(grad_output, output.shape, output.dtype)
            if call["expanded"]:
                gradient = gradient[:1].expand(output.shape)
            grads = self.machine.call(machine.BACKWARD, idle, _gradients, output, wanted, gradient)
        header: framing.Header = {"error": self.machine.error(), "refused": refused}
        header |= {"trains": bool(graded), "several": several}
        header["outputs"] = [
            {"kind": k, "shape": list(o.shape), "type": str(o.dtype).removeprefix("torch.")}
            for o, k in zip(outputs, kinds, strict=True)
        ]
        return header, outputs, grads

    def _forward(
        self, model: torch.nn.Module, inputs: list[Any]
    ) -> tuple[list[Tensor], list[str], bool]:
        """The outputs, whose they are, and whether they are in a tuple or list, while nothing that
        PyTorch may not do can be done. What they hold is kept before anything else of the file's
        can run."""
        made = model(*inputs)
        several = type(made) in (tuple, list)
        outputs = list(made) if several else [made]
        kinds = [_KINDS.get(type(output), "") for output in outputs]
        if all(kinds):
            with _plain(), _no_grad():
                flats = [_contiguous(_detach(output)) for output in outputs]
                self.machine.keep([(_pointer(f), f.numel() * f.element_size()) for f in flats])
        return outputs, kinds, several

    def _without_gradients(
        self, model: torch.nn.Module, inputs: list[Any]
    ) -> tuple[list[Tensor], list[str], bool]:
        with _no_grad():
            return self._forward(model, inputs)

    def _input(
        self, blob: bytes, place: tuple[int, int], shape: Shape, kind: str, strided: bool
    ) -> Tensor:
        """The same tensor for the same place and shape; `strided`: every other column of one, where
        it has columns. A number stays on the host."""
        if kind in _NUMBERS:
            return _frombuffer(bytearray(blob), dtype=_HELD[kind])[0]
        strided = strided and len(shape) > 1
        key = *place, tuple(shape), strided
        fresh = self._tensor(blob, shape, getattr(torch, kind))
        if key not in self.inputs and strided:
            self.inputs[key] = fresh.repeat_interleave(2, -1)[..., ::2]
        return _copy_(self.inputs.setdefault(key, fresh), fresh)

    def _bytes(self, tensor: Tensor) -> bytes:
        if tensor.device.type == "cpu" or not tensor.numel():
            flat = _contiguous(_cpu(_detach(tensor)))
            return bytes(flat.view(-1).view(torch.uint8).numpy())
        flat = _contiguous(_detach(tensor))
        self.machine.keep([(_pointer(flat), flat.numel() * flat.element_size())])
        return self.machine.kept()

    def _tensor(self, blob: bytes, shape: Shape, dtype: torch.dtype = _float) -> Tensor:
        if not blob:
            return self.machine.on(torch.empty(tuple(shape), dtype=dtype))
        flat = _frombuffer(bytearray(blob), dtype=dtype)
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
        parameters = [p for _, p in _named(model)]
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

    def reference(
        self,
        blobs: Blobs,
        text: str,
        arguments: Any,
        seed: int,
        shapes: list[Shape],
        types: list[str],
        mode: bool,
        trains: bool,
    ) -> framing.Message:
        """What Model, of a text that can be trusted, gives in this process now: on the CPU, and
        where the models were. And what is left of the least numbers there are."""
        module = _Module("reference")
        exec(compile(text, "reference.py", "exec"), module.__dict__)
        _seed(seed)
        model = _set_mode(module.Model(*_decoded(arguments)), mode)
        fresh = copy.deepcopy(model)  # it may count its calls
        values = [_frombuffer(bytearray(blobs[-1]), dtype=_float) * 0.5]
        values += self._evaluated(model, blobs, shapes, types, trains, _stay)
        with contextlib.suppress(RuntimeError):  # what only a card's library has
            moved = self.machine.on(fresh)
            values += self._evaluated(moved, blobs, shapes, types, trains, self.machine.on)
        return {}, [self._bytes(_detach(tensor)) for tensor in values]

    def _evaluated(
        self,
        model: torch.nn.Module,
        blobs: Blobs,
        shapes: list[Shape],
        types: list[str],
        trains: bool,
        move: Callable[[Tensor], Tensor],
    ) -> list[Tensor]:
        """Outputs, and gradients of the inputs where there are any."""
        arguments: list[Any] = []
        for blob, shape, kind in zip(blobs, shapes, types, strict=False):
            dtype = _HELD[kind] if kind in _NUMBERS else getattr(torch, kind)
            x = _frombuffer(bytearray(blob), dtype=dtype).reshape(tuple(shape)).clone()
            if kind in _NUMBERS:
                arguments.append(_NUMBERS[kind](x.item()))
            else:
                arguments.append(_detach(move(x)).requires_grad_(trains and x.is_floating_point()))
        with torch.set_grad_enabled(trains):
            made = model(*arguments)
        outputs = list(made) if isinstance(made, (tuple, list)) else [made]
        wanted = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
        graded = [output for output in outputs if output.requires_grad]
        if not (wanted and graded):
            return outputs
        grads = _grad(graded[0].sum(), wanted, allow_unused=True)
        return outputs + [g for g in grads if g is not None]

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


def _decoded(value: Any) -> Any:
    """Arguments again, of what JSON has for them."""
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "dict":
        return {key: _decoded(part) for key, part in inner.items()}
    if kind in ("tuple", "list"):
        return (tuple if kind == "tuple" else list)(_decoded(part) for part in inner)
    return torch.device(inner) if kind == "device" else getattr(torch, inner)


def _stay(tensor: Tensor) -> Tensor:
    return tensor


def _gradients(
    output: Tensor, wanted: list[Tensor], grad_output: Tensor
) -> Sequence[Tensor | None]:
    """Those of a grad_output, and then of half of it, for which the graph was kept."""
    first: Sequence[Tensor | None]
    first = _grad(output, wanted, grad_output, allow_unused=True, retain_graph=True)
    return *first, *_grad(output, wanted, 0.5 * grad_output, allow_unused=True)


def _named(model: torch.nn.Module, before: str = "") -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters of a model as nn.Module finds them, whatever it says of itself."""
    seen: set[int] = set()
    for path, module in _modules(model, before):
        for name, parameter in vars(module)["_parameters"].items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                if type(parameter) is not _Parameter:
                    raise TypeError(f"{path}{name} is a {type(parameter).__name__}")
                yield path + name, parameter


def _buffers(model: torch.nn.Module) -> dict[str, Tensor]:
    """The buffers of a model, in the same way."""
    return {
        path + name: buffer
        for path, module in _modules(model, "")
        for name, buffer in vars(module)["_buffers"].items()
        if buffer is not None
    }


def _modules(model: torch.nn.Module, before: str) -> Iterator[tuple[str, torch.nn.Module]]:
    yield before, model
    for name, module in vars(model)["_modules"].items():
        if module is not None:
            yield from _modules(module, f"{before}{name}.")


def _watch(event: str, _: object) -> None:
    """Of what a file does in Python: nothing by which it gets at the memory of its process."""
    if event in _REFUSED:
        raise RuntimeError(f"a model file needs no {event}")


def main() -> None:
    """Fork when asked to, one process after the other, and tell how each has ended."""
    control, limited = socket.socket(fileno=int(sys.argv[1])), sys.argv[2] == "limited"
    runtime, device, *capability = sys.argv[3:] or ["", ""]
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
            on: machine.Emulated | machine.Card | None = None
            if runtime:
                on = machine.Emulated(runtime, device, (major, minor), guarded=limited)
            Session(framing.Channel(files[0]), on or machine.Card()).serve()
            _exit(0)
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        control.send(struct.pack("<i", status))


def warm() -> None:
    """What PyTorch looks up once, in files that a fork cannot read."""
    tempfile.tempdir = "/tmp"
    tempfile.mkdtemp = folder_name  # type: ignore[assignment]  # before anybody looks for changes
    # torch.library wants it to be there
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.tempdir)
    narrow = torch.ones(2, 2, dtype=torch.bfloat16)
    torch.mm(narrow, narrow), narrow.float().half()


def folder_name(suffix: str = "", prefix: str = "tmp", dir: str | None = None) -> str:
    """In the place of tempfile.mkdtemp: only a name. Files ask for a folder to build in; the judge
    builds elsewhere, and nothing is written here."""
    return os.path.join(dir or "/tmp", f"{prefix or 'tmp'}{secrets.token_hex(4)}{suffix or ''}")


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
        own = os.path.dirname(os.path.abspath(__file__))
        lockdown.lock_in([os.path.dirname(runtime), os.path.dirname(sys.argv[4]), own])


if __name__ == "__main__":
    main()
