"""All kernel calls and other objects that the program of a simulated thread may yield (`from ... import *`)."""

from satview.capture.sim.calls.call import *  # noqa: F403
from satview.capture.sim.calls.channels import *  # noqa: F403  # noqa: F403
from satview.capture.sim.calls.interrupts import *  # noqa: F403
from satview.capture.sim.calls.messages import *  # noqa: F403
from satview.capture.sim.calls.mutexes import *  # noqa: F403
from satview.capture.sim.calls.processes import *  # noqa: F403
from satview.capture.sim.calls.queues import *  # noqa: F403  # noqa: F403
from satview.capture.sim.calls.scheduling import *  # noqa: F403  # noqa: F403
from satview.capture.sim.calls.signals import *  # noqa: F403  # noqa: F403
from satview.capture.sim.calls.timers import *  # noqa: F403
from satview.capture.sim.threads import *  # noqa: F403
