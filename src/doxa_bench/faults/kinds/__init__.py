"""The kinds of cases by name. To add one: a file with a class as in `contract.Kind`, and a line here."""

from __future__ import annotations

from doxa_bench.faults.contract import Kind
from doxa_bench.faults.kinds.damage import Damage
from doxa_bench.faults.kinds.disks import Disks
from doxa_bench.faults.kinds.headers import Headers
from doxa_bench.faults.kinds.inputs.command_lines import LINES
from doxa_bench.faults.kinds.inputs.consoles import Consoles
from doxa_bench.faults.kinds.inputs.result_files import RESULTS
from doxa_bench.faults.kinds.inputs.settings_files import SETTINGS
from doxa_bench.faults.kinds.inputs.tables import TABLES
from doxa_bench.faults.kinds.kills import Kills
from doxa_bench.faults.kinds.servers import Servers
from doxa_bench.faults.kinds.signals import Signals
from doxa_bench.faults.kinds.workers import Workers

KINDS: dict[str, Kind] = {
    "kills": Kills(),
    "damage": Damage(),
    "headers": Headers(),
    "disks": Disks(),
    "signals": Signals(),
    "tables": TABLES,
    "lines": LINES,
    "settings": SETTINGS,
    "results": RESULTS,
    "consoles": Consoles(),
    "servers": Servers(),
    "workers": Workers(),
}
