"""A run that several processes share out: the same steps and decisions as in one, in all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from anyorder.errors import UserError
from anyorder.modalities.fit import Run
from anyorder.support.processes import ALONE, Processes, add_all, joined
from anyorder.training.loop import Trainer

from small_runs import QUICK, small_trainer
from threads_as_processes import together

SHORT = replace(QUICK, steps=12, validate_every=4)


def weights_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    return dict(trainer.finish().state_dict())


def close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, weight in one.items():
        torch.testing.assert_close(other[name], weight, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("network", "change"),
    [
        ("residual_mlp", {}),  # with dropout
        ("causal_transformer", {}),  # and in its attention
        ("residual_mlp", {"batch": 3}),  # more processes than rows
        ("residual_mlp", {"early_stopping": False, "clip": 0.01}),
    ],
)
def test_the_number_of_processes_does_not_matter(network: str, change: dict[str, Any]) -> None:
    options = replace(SHORT, **change)
    alone = small_trainer(options, network)
    alone.run()

    def work(processes: Processes) -> Trainer:
        trainer = small_trainer(options, network, processes=processes)
        trainer.run()
        return trainer

    for count in (2, 4):
        found = together(count, work)
        for one in found:
            assert isinstance(one, Trainer), one
            close(weights_of(alone), weights_of(one))
            assert one.progress.step == alone.progress.step and one.progress.best_step == alone.progress.best_step
            assert one.progress.best == pytest.approx(alone.progress.best, rel=1e-5)
            assert all(map(torch.equal, weights_of(found[0]).values(), weights_of(one).values()))


def test_parts_are_shared_out_by_the_processes() -> None:
    passes = []

    def work(processes: Processes) -> Trainer:
        trainer = small_trainer(replace(SHORT, parts=4, steps=1, validate_every=10), processes=processes)
        taken = trainer.model.network.beside

        def counted(values: torch.Tensor, *rest: Any) -> torch.Tensor:
            passes.append(len(values))
            return taken(values, *rest)

        trainer.model.network.beside = counted
        trainer._join()
        trainer._step()
        return trainer

    together(2, work)
    assert passes == [8] * 4  # 32 rows in two passes of each, and no pass has more rows than four parts alone


def test_four_processes_stop_and_two_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    whole = small_trainer(SHORT)
    whole.run()

    def stopped(processes: Processes) -> Trainer:
        trainer = small_trainer(SHORT, processes=processes, checkpoint=path if processes.leads else None)
        agreed = trainer._agreed
        calls = []

        def asked(interrupt: Any) -> bool:  # the last of them gets a signal after the fifth step
            calls.append(None)
            interrupt.requested = processes.number == 3 and len(calls) > 5
            return agreed(interrupt)

        trainer._agreed = asked  # type: ignore[method-assign]
        trainer.run()
        return trainer

    for one in together(4, stopped):
        assert isinstance(one, Trainer), one
        assert one.progress.interrupted and one.progress.step == 5
    assert [file.name for file in tmp_path.iterdir()] == ["run.checkpoint"]

    def resumed(processes: Processes) -> Trainer:
        trainer = small_trainer(SHORT, processes=processes, checkpoint=path if processes.leads else None)
        trainer.take_up(resume=True)
        assert trainer.progress.step == (5 if processes.leads else 0)
        trainer.run()
        return trainer

    for one in together(2, resumed):
        assert isinstance(one, Trainer), one
        assert one.progress.step == SHORT.steps and not one.progress.interrupted
        close(weights_of(whole), weights_of(one))


def test_the_clock_is_that_of_the_first() -> None:
    def work(processes: Processes) -> Trainer:
        trainer = small_trainer(replace(QUICK, steps=None, minutes=1.0), processes=processes)
        trainer.seconds = 0.2 if processes.leads else 1e9
        trainer.run()
        return trainer

    first, second = together(2, work)
    assert isinstance(first, Trainer) and isinstance(second, Trainer), (first, second)
    assert first.progress.step == second.progress.step > 0
    assert second.seconds == 0.2 and second.progress.done


def test_processes_that_fit_different_things_are_refused() -> None:
    def work(processes: Processes) -> Trainer:
        trainer = small_trainer(replace(SHORT, batch=8 + processes.number), processes=processes)
        trainer.run()
        return trainer

    for error in together(2, work):
        assert isinstance(error, UserError) and "do not fit the same model" in str(error)


def test_what_the_first_makes_reaches_the_others_and_so_does_its_failure() -> None:
    model = small_trainer().model

    def run(processes: Processes) -> Run:
        return Run(0, torch.device("cpu"), None, (), False, False, 0.0, processes)

    helped: list[int] = []

    def work(processes: Processes) -> Any:
        return run(processes).finished(lambda: (model, {"name": "card"}), lambda: helped.append(processes.number))

    (own, card), (received, same), _ = together(3, work)
    assert own is model and card == same == {"name": "card"} and sorted(helped) == [1, 2]
    assert all(map(torch.equal, model.state_dict().values(), received.state_dict().values()))

    def fail(processes: Processes) -> Any:
        def broken() -> Any:
            raise UserError("the table is empty")

        return run(processes).finished(broken)

    first, second = together(2, fail)
    assert str(first) == "the table is empty"
    assert isinstance(second, UserError) and "the first process of this run has failed" in str(second)


def test_sums_of_many_tensors_go_in_few_messages() -> None:
    sizes = (3, 5, 0, 40, 2)

    def work(processes: Processes) -> list[torch.Tensor]:
        tensors = [torch.full((size,), float(processes.number + 1)) for size in sizes]
        add_all(processes, tensors, most=8)
        return tensors

    for tensors in together(2, work):
        assert isinstance(tensors, list), tensors
        assert [len(one) for one in tensors] == list(sizes)
        assert all(bool((one == 3.0).all()) for one in tensors)


def test_a_process_that_nobody_started_with_others_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert joined() == ALONE and ALONE.share(7) == slice(0, 7)


def test_shares_cover_all_rows_once() -> None:
    for rows in (0, 1, 5, 16):
        shares = [Processes(number, 4).share(rows) for number in range(4)]
        assert [row for own in shares for row in range(rows)[own]] == list(range(rows))
