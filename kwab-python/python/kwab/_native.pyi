"""The types of the extension module; ``kwab`` exports all of it."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeAlias, final

__all__ = [
    "AddressSpaceError",
    "Backtrace",
    "DamagedError",
    "Defect",
    "Dump",
    "Error",
    "ExpressionError",
    "Frame",
    "Function",
    "Location",
    "Memory",
    "MissingMemoryError",
    "OpenError",
    "Record",
    "Records",
    "Section",
    "Symbols",
    "Table",
    "import_log",
    "open",
    "open_all",
    "record_types",
    "set_memory_limit",
]

_Path: TypeAlias = str | PathLike[str]
_Source: TypeAlias = _Path | bytes | bytearray
_Symbols: TypeAlias = Symbols | Sequence[_Path]
_Report: TypeAlias = dict[str, Any]

class Error(Exception):
    """The base of all errors that kwab raises."""

class OpenError(Error):
    """The input is neither a dump nor a log that kwab can read."""

class DamagedError(Error):
    """A part of the dump that was asked for is damaged."""

class AddressSpaceError(Error):
    """The dump does not hold the address space."""

class ExpressionError(Error):
    """There is nothing of that name, shape or frame to show."""

class MissingMemoryError(Error):
    """Memory was not captured from `address` on; `available` are the bytes before it."""

    address: int
    available: bytes

@final
class Defect:
    """Something that is wrong with a dump."""

    @property
    def kind(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def first_section(self) -> int | None: ...
    @property
    def last_section(self) -> int | None: ...
    @property
    def text(self) -> str: ...

@final
class Section:
    """A sound section of a dump."""

    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def records(self) -> int: ...
    def payload(self) -> bytes: ...

@final
class Record:
    """One record; its fields are attributes, `None` when absent."""

    @property
    def type(self) -> str: ...
    @property
    def at(self) -> str: ...
    @property
    def wrong(self) -> str | None: ...
    def keys(self) -> list[str]: ...
    def bytes_of(self, name: str) -> bytes | None: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> dict[str, Any]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...

@final
class Records:
    """An iterator over records, which holds one section at a time."""

    @property
    def lost(self) -> list[str]: ...
    def __iter__(self) -> Records: ...
    def __next__(self) -> Record: ...

@final
class Table:
    """The records of one type as an Arrow table."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def lost(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Memory:
    """The memory of a dump. A read gives all bytes, or raises `MissingMemoryError`."""

    @property
    def is_physical(self) -> bool: ...
    def read(
        self, address: int, size: int, *, pid: int | None = None, cpu: int | None = None, cr3: int | None = None
    ) -> bytes: ...
    def read_int(
        self, address: int, size: int = 8, *, pid: int | None = None, cpu: int | None = None, cr3: int | None = None
    ) -> int: ...
    def read_physical(self, address: int, size: int) -> bytes: ...
    def pieces(self) -> list[dict[str, Any]]: ...
    def spaces(self) -> list[dict[str, Any]]: ...

@final
class Function:
    """A function at an address, as the source has it."""

    @property
    def name(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def inlined(self) -> bool: ...
    @property
    def machinery(self) -> bool: ...

@final
class Location:
    """What is known about an address."""

    @property
    def address(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    @property
    def symbol(self) -> str | None: ...
    @property
    def offset(self) -> int | None: ...
    @property
    def size(self) -> int | None: ...
    @property
    def functions(self) -> list[Function]: ...

@final
class Symbols:
    """The images of a dump."""

    @property
    def problems(self) -> list[str]: ...
    @property
    def images(self) -> list[dict[str, Any]]: ...
    def resolve(self, address: int, *, pid: int | None = None, return_address: bool = False) -> Location: ...
    def address_of(self, name: str, *, pid: int | None = None) -> int | None: ...

@final
class Frame:
    """A frame of a stack; `trust` says how it was found."""

    @property
    def ip(self) -> int: ...
    @property
    def sp(self) -> int | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def source(self) -> str | None: ...
    @property
    def trust(self) -> str: ...
    @property
    def machinery(self) -> bool: ...
    @property
    def functions(self) -> list[Function]: ...
    @property
    def at(self) -> str | None: ...

@final
class Backtrace:
    """A stack, innermost frame first, and who stood there."""

    @property
    def owners(self) -> list[str]: ...
    @property
    def of_death(self) -> bool: ...
    @property
    def user(self) -> bool: ...
    @property
    def frames(self) -> list[Frame]: ...
    @property
    def ends(self) -> str | None: ...
    @property
    def at(self) -> str | None: ...
    def __len__(self) -> int: ...

@final
class Dump:
    """An open dump. Its objects do not change and may be shared between threads."""

    @property
    def name(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def dumps(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def defects(self) -> list[Defect]: ...
    @property
    def sections(self) -> list[Section]: ...
    @property
    def memory(self) -> Memory: ...
    def records(
        self, type: str | None = None, *, section: str | None = None, number: int | None = None
    ) -> Records: ...
    def table(self, type: str) -> Table: ...
    def record_counts(self) -> dict[str, int]: ...
    def symbols(self, paths: Sequence[_Path] | None = None, *, force: bool = False) -> Symbols: ...
    def backtraces(self, symbols: _Symbols | None = None) -> list[Backtrace]: ...
    def summary(self) -> _Report: ...
    def triage(self, symbols: _Symbols | None = None, *, backing: _Path | None = None) -> _Report: ...
    def inspect(
        self, symbols: _Symbols | None = None, *, rows: int = 24, source: Sequence[_Path] | None = None
    ) -> _Report: ...
    def audit_vm(self, rules: Sequence[str] | None = None) -> _Report: ...
    def verify_pages(self, *, backing: _Path | None = None) -> _Report: ...
    def check(self) -> _Report: ...
    def translate(
        self, address: int, *, pid: int | None = None, cpu: int | None = None, cr3: int | None = None
    ) -> _Report: ...
    def whatis(
        self,
        address: int,
        symbols: _Symbols | None = None,
        *,
        physical: bool = False,
        pid: int | None = None,
        cpu: int | None = None,
        cr3: int | None = None,
    ) -> _Report: ...
    def search(
        self, pattern: bytes, symbols: _Symbols | None = None, *, align: int = 1, rows: int = 32
    ) -> _Report: ...
    def print(
        self,
        expression: str | None = None,
        symbols: _Symbols | None = None,
        *,
        frame: int = 0,
        task: int | None = None,
        pid: int | None = None,
        depth: int = 3,
        rows: int = 16,
    ) -> _Report: ...
    def save(self, path: _Path, *, overwrite: bool = False) -> None: ...

def open(source: _Source, number: int = 1, *, name: _Path | None = None) -> Dump:
    """Opens dump `number` of a file of dumps, or crash `number` of a log."""

def open_all(source: _Source, *, name: _Path | None = None) -> list[Dump]:
    """Opens all dumps of a file, or all crashes of a log."""

def import_log(source: _Source, *, name: _Path | None = None) -> tuple[_Report, list[Dump]]:
    """Imports a log; gives the report of the import and the dumps."""

def record_types() -> list[str]:
    """The names of all types of records, in the order of the format."""

def set_memory_limit(limit: int | None) -> None:
    """Limits the memory that reading one dump may take, for dumps that are opened from now on."""
