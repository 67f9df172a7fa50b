"""What runs inside the sandbox: standard library only, since nothing else is there.

`main` builds the walls and starts two processes. The *guest* holds the program. The *judge* runs
the tests, and calls the program's functions through a socket that carries plain data. So no code of
the program is ever executed where the verdict is made, and the only way to pass a test is to answer
rightly.
"""

from __future__ import annotations
