"""Kernel crash dumps and serial logs.

``kwab.open`` opens a dump or a crash of a log; everything else hangs on the :class:`Dump` that it gives. Integers of 64
bits are exact, an absent field is ``None``, memory that was not captured raises :class:`MissingMemoryError`, and damage
is listed, not raised: ``Dump.defects``, ``Records.lost``. Text of a dump is what a crashed or hostile machine wrote.

>>> dump = kwab.open("crash.kwab")
>>> dump.triage()["hypotheses"][0]["claim"]
'the kernel dereferenced a null pointer plus 0x18'
"""

from kwab._native import (
    AddressSpaceError,
    Backtrace,
    DamagedError,
    Defect,
    Dump,
    Error,
    ExpressionError,
    Frame,
    Function,
    Location,
    Memory,
    MissingMemoryError,
    OpenError,
    Record,
    Records,
    Section,
    Symbols,
    Table,
    import_log,
    open,
    open_all,
    record_types,
    set_memory_limit,
)

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
