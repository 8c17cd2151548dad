"""A prediction: the unchanged replay with how well it fits, then the replay with changes, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from satview.analysis.timing import Timing
from satview.answers.whatif import Compared
from satview.base.safe_text import visible_line
from satview.store.trace import PREDICTED_CHANGES, PREDICTED_FROM, Trace
from satview.whatif.changes import Change, Changed, with_changes
from satview.whatif.fit import Figures, Fit, Key, figures, fit_of, own_activities
from satview.whatif.program import programs_of
from satview.whatif.replay import Replay, replay
from satview.whatif.steps import Programs


@dataclass(frozen=True, slots=True)
class Basis:
    """What predictions of a trace rest on: its programs, and how well they fit when nothing is changed.

    Attributes:
        timing: As of `read_timing`.
        seed: Of what kernel calls cost.
        findings: What goes wrong on the simulated kernel when nothing is changed: not worth saying then.
    """

    programs: Programs
    fit: Fit
    timing: Mapping[str, Timing] | None
    seed: int
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would have happened.

    Attributes:
        says: The changes, as they are written; none = the replay is unchanged.
        compared: Recorded, replayed and predicted, one entry for each activity.
        findings: What went wrong on the simulated kernel, such as a deadlock, a sentence each.
        figures: Of the predicted activities.
    """

    says: tuple[str, ...]
    compared: tuple[Compared, ...]
    findings: tuple[str, ...]
    figures: Mapping[Key, Figures]


def basis_of(trace: Trace, timing: Mapping[str, Timing] | None = None, seed: int = 1) -> Basis:
    """Replay a trace unchanged and return how well that fits.

    Raises:
        UsageError: The trace cannot be replayed, or the timing does not fit it.
    """
    programs = programs_of(trace)
    with TemporaryDirectory(prefix="satview-") as folder:
        replayed = replay(programs, Path(folder) / "unchanged.kev", seed=seed)
        fit = fit_of((trace, programs.begin_cycles), _times(replayed), programs.length_ns, timing)
        replayed.trace.payloads.close()
    return Basis(programs, fit, timing, seed, replayed.findings)


def predict(basis: Basis, changes: Sequence[Change], out: Path | None = None) -> Prediction:
    """Replay with changes.

    Args:
        basis: Of the trace.
        changes: What to change; none compares the trace with its unchanged replay.
        out: Where to write the predicted trace; None = nowhere.

    Raises:
        UsageError: A change does not fit the trace.
        CaptureError: The file cannot be written.
    """
    changed = with_changes(basis.programs, changes)
    if not changes and out is None:
        return Prediction((), _compared(basis.fit, {}), (), {})
    with TemporaryDirectory(prefix="satview-") as folder:
        replayed = replay(changed.programs, out or Path(folder) / "predicted.kev", changed.cpus, basis.seed,
                          _attributes(basis, changed))  # fmt: skip
        bounds_ns = {key: known.recorded.deadline_ns for key, known in basis.fit.activities.items()}
        predicted = figures(*_times(replayed), basis.programs.length_ns, own_activities(basis.timing), bounds_ns)
        replayed.trace.payloads.close()
    findings = tuple(finding for finding in replayed.findings if finding not in basis.findings)
    return Prediction(changed.says, _compared(basis.fit, predicted), findings, predicted)


def _times(replayed: Replay) -> tuple[Trace, int]:
    return replayed.trace, replayed.begin_cycles


def _attributes(basis: Basis, changed: Changed) -> tuple[tuple[str, str], ...]:
    says = "; ".join(changed.says) or "nothing"
    name = basis.programs.trace.path.name
    return (PREDICTED_FROM, visible_line(name)), (PREDICTED_CHANGES, visible_line(says))


def _compared(fit: Fit, predicted: Mapping[Key, Figures]) -> tuple[Compared, ...]:
    out = []
    for key, fit_of_activity in fit.activities.items():
        recorded, replayed = fit_of_activity.recorded, fit_of_activity.replayed
        figure = predicted.get(key)
        count, median, p99 = (figure.count, figure.median_ns, figure.p99_ns) if figure is not None else (0, -1, -1)
        out.append(Compared(recorded.name, (recorded.count, replayed.count if replayed else 0, count),
                            (recorded.median_ns, replayed.median_ns if replayed else -1, median),
                            (recorded.p99_ns, replayed.p99_ns if replayed else -1, p99)))  # fmt: skip
    return tuple(out)
