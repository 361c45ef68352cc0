"""What is lost, silent or executed when processes are killed, disks fill up, and files and input are hostile?

A campaign of cases, kind after kind, for as long as it is given. A case is a function of the seed, its kind and its
number, and `--only KIND:NUMBER` tries it again.
"""

from doxa_bench.faults.campaign import add as add
from doxa_bench.faults.campaign import measure as measure
from doxa_bench.faults.show import show as show
