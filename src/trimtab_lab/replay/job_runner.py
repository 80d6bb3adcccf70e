"""Runs replay jobs on all cores, and skips results that are already in the file."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trimtab.logs.recording import Recording
from trimtab_lab.replay import policy_run
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.policy_run import Task

Result = dict[str, Any]


@dataclass(frozen=True)
class ReplayJob:
    """One recording and the tasks still to run on it."""

    recording: Recording
    tasks: tuple[Task, ...]

    @property
    def calls(self) -> int:
        """How many model calls the job replays."""
        return len(self.recording.turns) * len(self.tasks)


def run_job(job: ReplayJob) -> list[Result]:
    return list(policy_run.run(job.recording, job.tasks))


class ResultFile:
    """Results as JSON lines; a file cut off in the middle of a line is repaired and continued."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.results: dict[str, Result] = {}
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):  # cut off: remove the incomplete line
                path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
            for line in text.splitlines():
                try:
                    result = json.loads(line)
                except ValueError:
                    continue
                self.results[result["key"]] = result

    def add(self, result: Result) -> None:
        """Keep a result, also on disk if there is a file."""
        self.results[result["key"]] = result
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, separators=(",", ":")) + "\n")


def replay(
    recordings: Sequence[Recording],
    *,
    policies: Sequence[str],
    windows: Sequence[int],
    store: ResultFile | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """Run every policy at every window over every recording.

    ``store`` keeps results; those of earlier runs in it are not computed again.  ``progress`` gets
    (model calls done, all model calls).  Returns results in the order recording, window, policy,
    with any number of workers.  Raises InvalidSetting for an unknown policy.
    """
    store = store or ResultFile(None)
    policies_by_name = {name: find(name) for name in policies}
    versions = {name: policy.version for name, policy in policies_by_name.items()}
    alone = {name for name, policy in policies_by_name.items() if policy.format}
    tasks = [Task(policy, window) for window in windows for policy in policies]
    wanted, jobs = [], []
    for recording in recordings:
        if not recording.turns:
            continue
        keys = {task.key(recording, versions[task.policy]): task for task in tasks}
        wanted += list(keys)
        missing = [task for key, task in keys.items() if key not in store.results]
        jobs += [ReplayJob(recording, tasks) for tasks in _shared(missing, alone)]
    # The slow and the long ones first, so that the end is not one process.
    jobs.sort(key=lambda job: (job.tasks[0].policy not in alone, -job.calls))
    total, done = sum(job.calls for job in jobs), 0
    progress(0, total)
    for job, results in _run(jobs, workers):
        for result in results:
            store.add(result)
        done += job.calls
        progress(done, total)
    return [store.results[key] for key in wanted]


def _shared(tasks: Sequence[Task], alone: Collection[str]) -> list[tuple[Task, ...]]:
    """Group tasks into jobs: tasks on the unconverted recording share one job, so that its index is
    computed once; a policy that needs another format (another library, slow) gets a job
    ``alone``."""
    together = tuple(task for task in tasks if task.policy not in alone)
    jobs: list[tuple[Task, ...]] = [(task,) for task in tasks if task.policy in alone]
    return [*jobs, together] if together else jobs


def _run(
    jobs: Sequence[ReplayJob], workers: int | None
) -> Iterator[tuple[ReplayJob, list[Result]]]:
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    if workers <= 1:
        for job in jobs:
            yield job, run_job(job)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(run_job, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def sample(recordings: Iterable[Recording], count: int, seed: int) -> list[Recording]:
    """``count`` recordings in their order; the same ones for the same seed."""
    whole = list(recordings)
    if count >= len(whole):
        return whole
    chosen = set(random.Random(seed).sample(range(len(whole)), count))
    return [recording for number, recording in enumerate(whole) if number in chosen]


def sample_each(recordings: Iterable[Recording], count: int, seed: int) -> list[Recording]:
    """``count`` recordings of each source, source by source; the same ones for the same seed."""
    by_source: dict[str, list[Recording]] = {}
    for recording in recordings:
        by_source.setdefault(recording.source, []).append(recording)
    return [one for own in by_source.values() for one in sample(own, count, seed)]
