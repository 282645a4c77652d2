"""An operator inside DistributedDataParallel, on two processes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import warp as wp

PROCESSES = 2


@wp.kernel
def square_error(
    x: wp.array(dtype=wp.float64),
    weight: wp.array(dtype=wp.float64),
    y: wp.array(dtype=wp.float64),
    loss: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    error = weight[0] * x[i] + weight[1] - y[i]
    wp.atomic_add(loss, 0, error * error)


class Line(torch.nn.Module):
    """A line through points; the module's own operator computes the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 0.0], dtype=torch.float64))
        self.op = wp.torch_op(square_error, output_dims=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.op(x, self.weight, y)


def points(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.arange(1.0, 4.0, dtype=torch.float64) + rank
    return x, 3 * x + 1


def run(rank: int, meeting_point: str) -> None:
    """Take one backward pass as one of the processes, and print the gradient."""
    import torch.distributed as distributed

    distributed.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=PROCESSES)
    model = torch.nn.parallel.DistributedDataParallel(Line())
    model(*points(rank)).sum().backward()
    print(json.dumps(model.module.weight.grad.tolist()))
    distributed.destroy_process_group()


def test_gradients_are_averaged_over_the_processes() -> None:
    expected = torch.zeros(2, dtype=torch.float64)
    for rank in range(PROCESSES):
        x, y = points(rank)
        error = x - y
        expected += 2 * torch.stack([(error * x).sum(), error.sum()]) / PROCESSES
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-W", "error", __file__, str(Path(directory) / "meeting")]
        workers = [
            subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(PROCESSES)
        ]
        outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    for output in outputs:
        torch.testing.assert_close(torch.tensor(json.loads(output), dtype=torch.float64), expected)


if __name__ == "__main__":
    run(int(sys.argv[2]), sys.argv[1])
