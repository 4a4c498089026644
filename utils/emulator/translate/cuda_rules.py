"""What nvcc or CUDA refuses, and g++ would take: refused here too, in a line of its own.

Only what is certain: a name that is known to be a host function's, a host variable's, or one of the
host's library. A real nvcc, where there is one, has the last word and sees more.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from utils.emulator.translate import built_ins
from utils.emulator.translate.code import Code
from utils.emulator.translate.functions import (
    Function,
    Macros,
    Variable,
    functions_and_variables,
    locals_of,
)
from utils.ground.errors import CompileError

# Of the C library, what people do call in kernels by mistake, or on purpose.
_C = """abort atexit atof atoi calloc exit fclose fflush fgets fopen fprintf fputs fread
    fscanf fwrite getchar getenv gets memchr memcmp memmove perror putchar puts qsort raise
    rand realloc scanf signal sleep snprintf sprintf srand sscanf strcat strchr strcmp strcpy
    strlen strncpy strtod strtol system time usleep vprintf write read open close fork kill
    pthread_create syscall bcopy bzero mempcpy wmemcpy swab""".split()
# Of the C++ library, whatever is none of types, constants and mathematics.
_STD = """accumulate adjacent_find any_of all_of async basic_string cerr cin clog copy
    copy_backward copy_if copy_n count count_if cout deque endl equal fill fill_n find find_if
    for_each forward_list function future fstream generate ifstream inner_product iota
    istringstream list lock_guard make_shared make_unique map max_element memmove merge
    min_element move_backward multimap multiset mutex nth_element ofstream ostringstream
    partial_sort partial_sum partition queue rand reduce remove_if replace reverse rotate set
    shared_ptr shuffle sort srand stable_sort stack string stringstream swap swap_ranges
    thread to_string transform uninitialized_copy unique unique_ptr unordered_map
    unordered_set vector exit abort printf_s mt19937 random_device uniform_real_distribution
    normal_distribution chrono""".split()
# Of both, functions that are constexpr: nvcc calls them in kernels where its flags say so.
_CONSTEXPR = "clamp max min minmax numeric_limits".split()
# Members of cooperative groups and of other types that CUDA's headers bring.
_MEMBERS = """sync size thread_rank num_threads shfl shfl_up shfl_down shfl_xor any all
    ballot meta_group_rank meta_group_size group_index thread_index dim_threads dim_blocks
    block_rank num_blocks wait arrive block_index grid_dim group_dim is_valid match_any
    match_all""".split()


@dataclass
class _Text:
    code: Code
    filename: str
    first_line: int
    functions: list[Function]
    variables: list[Variable]

    @property
    def directives(self) -> str:
        """All of them, joined."""
        return " ".join(t.text for t in self.code.tokens if t.kind == "directive")


class Rules:
    """The texts of a program, gathered one by one, and judged together. `relaxed`: kernels may call
    constexpr functions of the host, as nvcc allows by --expt-relaxed-constexpr."""

    def __init__(self, relaxed: bool) -> None:
        self._texts: list[tuple[Code, str, int]] = []
        self._relaxed = relaxed

    def add(self, code: Code, filename: str, first_line: int) -> None:
        """A text of the program, its own or a header's."""
        self._texts.append((code, filename, first_line))

    def judge(self) -> list[Function]:
        """All functions. Raises CompileError, as `file:line: error: …`, for what nvcc would not
        compile."""
        macros = Macros()
        for code, _, _ in self._texts:
            macros.add(code)
        texts = []
        for code, filename, first_line in self._texts:
            texts.append(_Text(code, filename, first_line, *functions_and_variables(code, macros)))
        known = _Known(texts, macros, self._relaxed)
        for text in texts:
            for position, message in known.objections(text):
                line = text.code.line(position, text.first_line)
                raise CompileError(f"{text.filename}:{line}: error: {message}")
        every = [function for text in texts for function in text.functions]
        built_ins.rename(every)
        return every


class _Known:
    """What names mean in all texts."""

    def __init__(self, texts: list[_Text], macros: Macros, relaxed: bool):
        self.macros = macros
        self.relaxed = relaxed
        self.free: dict[str, list[Function]] = {}
        self.members: dict[str, list[Function]] = {}
        for text in texts:
            for function in text.functions:
                table = self.members if function.member else self.free
                table.setdefault(function.name, []).append(function)
        self.variables = {v.name: v for text in texts for v in text.variables}
        self.std = any(
            text.code.text(p + 2) == "std" for text in texts for p in text.code.positions("using")
        )
        # A name that is none of these has its place in code for the device.
        self.suspects = {"throw", "try", *_STD, *_C, *self.variables}
        self.suspects |= set() if relaxed else set(_CONSTEXPR)
        for table in (self.free, self.members):
            self.suspects |= {
                name for name, functions in table.items() if not self._callable(functions)
            }
        self.suspects -= {n for n, f in self.free.items() if built_ins.may_mean_built_in(f)}

    def objections(self, text: _Text) -> Iterator[tuple[int, str]]:
        """What is wrong in a text, and where."""
        for function in text.functions:
            if function.is_kernel:
                yield from self._declared(function)
            if not function.body:
                continue
            if function.words & {"__device__", "__global__"}:
                # A function for both may have a branch of its own for the host.
                both = "__host__" in function.words and "__CUDA_ARCH__" in text.directives
                yield from () if both else self._in_device_code(function)
            elif "?" not in function.words:
                yield from self._in_host_code(function)

    def _declared(self, kernel: Function) -> Iterator[tuple[int, str]]:
        code = kernel.code
        words = [code.text(p) for p in kernel.head]
        if "auto" not in words and "void" not in words and "?" not in kernel.words:
            if "void" not in kernel.words:
                yield kernel.at, f"'{kernel.name}' is a __global__ function and must return void"
        for parameter in code.split(kernel.parameters):
            if "&" in self._outside(code, parameter):
                yield (
                    kernel.at,
                    f"'{kernel.name}' takes '{code.flat(parameter)}' by reference: a reference to "
                    "the host's memory, where a kernel cannot go. Pass the value, or a pointer to "
                    "device memory",
                )

    @staticmethod
    def _outside(code: Code, parameter: list[int]) -> Iterator[str]:
        """What of a parameter stands outside of brackets and template arguments."""
        depth = 0
        for text in map(code.text, parameter):
            if not depth:
                yield text
            depth += (text in "([{<") - (text in ")]}>")

    def _in_device_code(self, function: Function) -> Iterator[tuple[int, str]]:
        code = function.code
        suspects = [p for p in function.body if code.words[p] in self.suspects]
        own = locals_of(function) if suspects else set()
        who = f"a kernel, or a function that kernels call ('{function.name}')"
        for position in suspects:
            name, before, after = (code.text(position + k) for k in (0, -1, 1))
            if name in ("throw", "try"):
                yield position, f"there are no exceptions on the device: '{name}' in {who}"
            elif before == "::" and code.text(position - 2) == "std":
                if name in (*_STD, *_C):
                    yield position, f"std::{name} is for the host: it has no place in {who}"
                elif name in _CONSTEXPR and self._calls(code, position):
                    yield (
                        position,
                        f"std::{name} is for the host, though constexpr: nvcc does not call it in "
                        f"{who}. CUDA has functions and constants of its own, such as max() and "
                        "INFINITY",
                    )
            elif before in (".", "->"):
                candidates = self.members.get(name, [])
                if (
                    after == "("
                    and candidates
                    and name not in _MEMBERS
                    and not self._callable(candidates)
                ):
                    yield position, self._host_function(candidates, who)
            elif before == "::" or name in own or name in self.macros.words:
                continue
            elif name in self.free:
                called = after == "(" or (after == "<" and self._is_call(code, position))
                called &= code.text(position - 2) not in ("sizeof", "decltype")
                if called and not self._callable(self.free[name]) and name not in self.members:
                    yield position, self._host_function(self.free[name], who)
            elif name in self.variables and name not in self.members:
                yield from self._variable(code, position, who)
            elif after == "(" and name in _C and name not in self.members:
                yield position, f"{name} is a function of the host's library, called in {who}"
            elif self.std and name in _STD and after in ("(", "<") and name not in self.members:
                yield position, f"std::{name} is for the host: it has no place in {who}"

    def _variable(self, code: Code, position: int, who: str) -> Iterator[tuple[int, str]]:
        variable = self.variables[code.text(position)]
        if variable.array:
            return  # constants: nvcc takes some uses and not others
        yield (
            position,
            f"'{variable.name}' is a variable of the host, read in {who}; pass it as an argument, "
            "or declare it constexpr, __constant__ or __device__",
        )

    def _callable(self, functions: Iterable[Function]) -> bool:
        return any(f.on_device and (self.relaxed or f.is_marked) or f.is_kernel for f in functions)

    @staticmethod
    def _host_function(functions: Sequence[Function], who: str) -> str:
        name, constant = functions[0].name, any("constexpr" in f.words for f in functions)
        text = f"'{name}' has no __device__, so it is a host function"
        return f"{text}{', though constexpr' * constant}; it is called in {who}"

    @staticmethod
    def _calls(code: Code, position: int) -> bool:
        """Whether `name(`, `name<...>(` or a function of `name<...>` is called there."""
        end = position + 1
        if code.text(end) == "<":
            end = code.angle_close(end)
        while code.text(end) == "::":
            end += 2
        return code.text(end) == "("

    @staticmethod
    def _is_call(code: Code, position: int) -> bool:
        """Whether `name<...>(` stands there."""
        end = code.angle_close(position + 1)
        return code.text(end - 1) == ">" and code.text(end) == "("

    def _in_host_code(self, function: Function) -> Iterator[tuple[int, str]]:
        code = function.code
        known = [p for p in function.body if code.words[p] in self.free]
        own = locals_of(function) if known else set()
        lambdas = any(p in function.body for p in code.positions("__device__"))
        for position in known:
            name = code.words[position]
            if name in own:
                continue
            if code.text(position - 1) in (".", "->", "::") or name in self.macros.words:
                continue
            candidates, after = self.free[name], code.text(position + 1)
            if self._is_launch(code, position):
                if not any(f.is_kernel or "?" in f.words for f in candidates):
                    yield (
                        position,
                        f"'{name}' is launched, but it is no kernel: it has no __global__",
                    )
            elif after == "(" and name not in self.members and not lambdas:
                if all(f.is_kernel for f in candidates):
                    yield (
                        position,
                        f"'{name}' is a kernel: it is launched, with <<<...>>>, not called",
                    )
                elif not any(f.on_host or "?" in f.words for f in candidates):
                    yield (
                        position,
                        f"'{name}' is a __device__ function, which the host cannot call",
                    )

    @staticmethod
    def _is_launch(code: Code, position: int) -> bool:
        """Whether `name<<<` or `name<...><<<` stands there."""
        following = position + 1
        if code.text(following) == "<" and code.run(following) == 1:
            following = code.angle_close(following)
        return code.text(following) == "<" and code.run(following) >= 3
