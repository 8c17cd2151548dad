"""What a simulated thread may yield: every kernel call under one roof, for programs (`from ... import *`).

Names follow the C library. A call's result is the value of the `yield`; a failed one raises `QnxError` there. Each
family has its own module, with arguments, effect and events of its calls; the modules of the kernel import those.
"""

from satview.capture.sim.call import *  # noqa: F403
from satview.capture.sim.channels import *  # noqa: F403
from satview.capture.sim.clocks import *  # noqa: F403
from satview.capture.sim.interrupts import *  # noqa: F403
from satview.capture.sim.messages import *  # noqa: F403
from satview.capture.sim.mutexes import *  # noqa: F403
from satview.capture.sim.process_calls import *  # noqa: F403
from satview.capture.sim.pulses import *  # noqa: F403
from satview.capture.sim.scheduling import *  # noqa: F403
from satview.capture.sim.semaphores import *  # noqa: F403
from satview.capture.sim.sigevent import *  # noqa: F403
from satview.capture.sim.signals import *  # noqa: F403
from satview.capture.sim.thread_calls import *  # noqa: F403
from satview.capture.sim.timers import *  # noqa: F403
from satview.capture.sim.trace_calls import *  # noqa: F403
