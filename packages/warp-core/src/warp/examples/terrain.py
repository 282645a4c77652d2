"""Find launch velocities that roll boulders over real terrain into chosen targets, by gradients of the simulation.

The terrain is the digital elevation model of the Jacksboro fault that Matplotlib ships: 344 x 403 heights in metres.
Boulders start along the scarp, fall under gravity, touch the ground through a smooth contact law and are slowed down by
friction. The loss is the mean squared distance from the targets, and its gradient with respect to the launch
velocities goes through every time step of the simulation.

The simulation is written twice, and both forms have the same gradient:

* `simulate_loop`: one launch, with the loop over time inside the kernel. This is the form to use.
* `simulate_steps`: one launch per time step, recorded on the tape, with separate arrays for the state of each step.

Usage: python -m warp.examples.terrain [--short] [--output DIR] [--particles N] [--steps N] [--iterations N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import trange

import warp as wp
from warp.examples.terrain_map import load_elevation, sample
from warp.examples.terrain_plot import draw

TIME_STEP = 0.1  # s
GRAVITY = 9.81  # m/s^2
STIFFNESS = 20.0  # 1/s^2, contact force per metre of depth and kilogram
DAMPING = 9.0  # 1/s, contact force per m/s towards the ground and kilogram
SOFTNESS = 4.0  # m/s^2, width of the transition between flight and contact
FRICTION = 0.2  # friction force per contact force
CREEP = 1.0  # m/s, speed below which friction fades out, so that it is smooth at rest
DRAG = 0.01  # 1/s, air drag per m/s and kilogram


@wp.func
def release(start: wp.vec2d, launch: wp.vec2d, heights: wp.array2d[wp.float64], spacing: wp.vec2d):
    """Return position and velocity of a boulder on the ground, moving along it with a horizontal velocity."""
    height, slope_x, slope_y = sample(heights, spacing, start[0], start[1])
    climb = slope_x * launch[0] + slope_y * launch[1]
    return wp.vec3d(start[0], start[1], height), wp.vec3d(launch[0], launch[1], climb)


@wp.func
def advance(position: wp.vec3d, velocity: wp.vec3d, heights: wp.array2d[wp.float64], spacing: wp.vec2d):
    """Return position and velocity one time step later: gravity, contact, friction and drag, all smooth."""
    height, slope_x, slope_y = sample(heights, spacing, position[0], position[1])
    normal = wp.normalize(wp.vec3d(-slope_x, -slope_y, wp.float64(1.0)))
    depth = (height - position[2]) * normal[2]
    rising = wp.dot(velocity, normal)
    sliding = velocity - rising * normal

    load = (STIFFNESS * depth - DAMPING * rising) / SOFTNESS
    contact = SOFTNESS * (wp.max(load, wp.float64(0.0)) + wp.log(1.0 + wp.exp(-wp.abs(load))))
    friction = FRICTION * contact / wp.sqrt(wp.dot(sliding, sliding) + CREEP * CREEP)
    force = contact * normal - friction * sliding - DRAG * velocity - wp.vec3d(0.0, 0.0, GRAVITY)

    next_velocity = velocity + TIME_STEP * force
    return position + TIME_STEP * next_velocity, next_velocity


@wp.kernel
def roll(
    start: wp.array[wp.vec2d],
    launch: wp.array[wp.vec2d],
    heights: wp.array2d[wp.float64],
    spacing: wp.vec2d,
    steps: int,
    path: wp.array2d[wp.vec3d],
    final: wp.array[wp.vec3d],
):
    """Roll one boulder per thread through all time steps, with the state carried by the loop."""
    i = wp.tid()
    position, velocity = release(start[i], launch[i], heights, spacing)
    path[0, i] = position
    for k in range(steps):
        position, velocity = advance(position, velocity, heights, spacing)
        path[k + 1, i] = position
    final[i] = position


@wp.kernel
def first_step(
    start: wp.array[wp.vec2d],
    launch: wp.array[wp.vec2d],
    heights: wp.array2d[wp.float64],
    spacing: wp.vec2d,
    position: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
):
    """Release one boulder per thread."""
    i = wp.tid()
    placed, moving = release(start[i], launch[i], heights, spacing)
    position[i] = placed
    velocity[i] = moving


@wp.kernel
def next_step(
    position: wp.array[wp.vec3d],
    velocity: wp.array[wp.vec3d],
    heights: wp.array2d[wp.float64],
    spacing: wp.vec2d,
    next_position: wp.array[wp.vec3d],
    next_velocity: wp.array[wp.vec3d],
):
    """Move one boulder per thread by one time step."""
    i = wp.tid()
    moved, changed = advance(position[i], velocity[i], heights, spacing)
    next_position[i] = moved
    next_velocity[i] = changed


@wp.kernel
def measure(
    position: wp.array[wp.vec3d], target: wp.array[wp.vec2d], misses: wp.array[wp.float64], loss: wp.array[wp.float64]
):
    """Compute each boulder's squared distance from its target (km^2), and their mean."""
    i = wp.tid()
    miss = wp.vec2d(position[i][0] - target[i][0], position[i][1] - target[i][1]) / 1000.0
    misses[i] = wp.dot(miss, miss)
    wp.atomic_add(loss, 0, wp.dot(miss, miss) / wp.float64(target.shape[0]))


@dataclass
class Scene:
    """The terrain, where the boulders start, where they shall go, and how many steps of time there are."""

    heights: wp.array
    spacing: wp.vec2d
    start: wp.array
    target: wp.array
    steps: int


@dataclass
class Outcome:
    """The loss (km^2), the squared miss of each boulder (km^2), and the paths (steps + 1, boulders, 3) in metres."""

    loss: wp.array
    misses: wp.array
    path: NDArray[np.float64]


def states(count: int) -> wp.array:
    """Return an array for a three-dimensional state of every boulder, which takes part in gradients."""
    return wp.zeros(count, dtype=wp.vec3d, requires_grad=True)


def score(scene: Scene, position: wp.array, path: NDArray[np.float64]) -> Outcome:
    """Compare the final positions with the targets."""
    count = len(scene.target)
    misses = wp.zeros(count, dtype=wp.float64)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    wp.launch(measure, dim=count, inputs=[position, scene.target], outputs=[misses, loss])
    return Outcome(loss, misses, path)


def simulate_loop(scene: Scene, launch: wp.array) -> Outcome:
    """Simulate with one launch: the loop over time is in the kernel."""
    count = len(launch)
    path = wp.zeros((scene.steps + 1, count), dtype=wp.vec3d)
    final = states(count)
    inputs = [scene.start, launch, scene.heights, scene.spacing, scene.steps]
    wp.launch(roll, dim=count, inputs=inputs, outputs=[path, final])
    return score(scene, final, path.numpy())


def simulate_steps(scene: Scene, launch: wp.array) -> Outcome:
    """Simulate with one launch per time step: the tape holds the loop over time."""
    count = len(launch)
    position, velocity = states(count), states(count)
    inputs = [scene.start, launch, scene.heights, scene.spacing]
    wp.launch(first_step, dim=count, inputs=inputs, outputs=[position, velocity])
    path = [position.numpy()]
    for _ in range(scene.steps):
        inputs = [position, velocity, scene.heights, scene.spacing]
        position, velocity = states(count), states(count)
        wp.launch(next_step, dim=count, inputs=inputs, outputs=[position, velocity])
        path.append(position.numpy())
    return score(scene, position, np.stack(path))


def make_scene(particles: int, steps: int) -> tuple[Scene, wp.array]:
    """Place boulders along the crest of the scarp and targets in the valley; return them and the first guess (m/s)."""
    heights, spacing = load_elevation()
    crest = np.linspace([19_500.0, 20_700.0], [26_500.0, 26_000.0], particles)
    downhill = np.array([0.6, -0.8])
    speed = 47.0 + 10.0 * np.sin(6.0 * np.pi * np.linspace(0.0, 1.0, particles))
    scene = Scene(
        heights=wp.array(heights, dtype=wp.float64),
        spacing=wp.vec2d(*spacing),
        start=wp.array(crest, dtype=wp.vec2d),
        target=wp.array(crest + TIME_STEP * steps * speed[:, None] * downhill, dtype=wp.vec2d),
        steps=steps,
    )
    return scene, wp.array(np.tile(30.0 * downhill, (particles, 1)), dtype=wp.vec2d, requires_grad=True)


def gradient_of(simulate: Callable[[Scene, wp.array], Outcome], scene: Scene, launch: wp.array) -> NDArray[np.float64]:
    """Return the gradient of the loss with respect to the launch velocities, (boulders, 2), in km^2 s/m."""
    with wp.Tape() as tape:
        outcome = simulate(scene, launch)
    tape.backward(outcome.loss)
    gradient = np.array(launch.grad.numpy(), dtype=np.float64)
    tape.zero()
    return gradient


def differences_of(scene: Scene, launch: wp.array, width: float = 1e-3) -> NDArray[np.float64]:
    """Return the same gradient by central differences; boulders are independent, so all are moved at once."""
    velocities = launch.numpy()
    gradient = np.zeros_like(velocities)
    for component in range(2):
        for distance, weight in ((1.0, 8.0), (-1.0, -8.0), (2.0, -1.0), (-2.0, 1.0)):  # of fourth order
            moved = velocities.copy()
            moved[:, component] += distance * width
            misses = simulate_loop(scene, wp.array(moved, dtype=wp.vec2d)).misses.numpy()
            gradient[:, component] += weight * misses / (12.0 * width * len(velocities))
    return gradient


def check_gradients(scene: Scene, launch: wp.array) -> tuple[float, float]:
    """Return how far the other form and central differences are from `simulate_loop`, relative to the largest entry."""
    gradient = gradient_of(simulate_loop, scene, launch)
    scale = np.abs(gradient).max()
    other_form = np.abs(gradient - gradient_of(simulate_steps, scene, launch)).max() / scale
    differences = np.abs(gradient - differences_of(scene, launch)).max() / scale
    return float(other_form), float(differences)


def optimise(scene: Scene, launch: wp.array, iterations: int, rate: float = 4.0) -> list[float]:
    """Improve the launch velocities in place with Adam, whose steps begin at `rate` m/s; return the losses (km^2)."""
    losses = []
    velocities = np.array(launch.numpy())
    mean, square = np.zeros_like(velocities), np.zeros_like(velocities)
    progress = trange(iterations, desc="optimising", unit="step")
    for k in progress:
        with wp.Tape() as tape:
            outcome = simulate_loop(scene, launch)
        tape.backward(outcome.loss)
        losses.append(float(outcome.loss.numpy()[0]))
        progress.set_postfix_str(f"loss {losses[-1]:.2e} km^2")

        gradient = launch.grad.numpy()
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        direction = mean / (1.0 - 0.9 ** (k + 1)) / (np.sqrt(square / (1.0 - 0.99 ** (k + 1))) + 1e-12)
        velocities -= rate * 0.5 * (1.0 + np.cos(np.pi * k / iterations)) * direction
        tape.zero()
        launch.assign(velocities)
    return losses


def main(arguments: Sequence[str] | None = None) -> None:
    """Optimise, check the gradients before and after, and save a picture."""
    parser = argparse.ArgumentParser(prog="python -m warp.examples.terrain", description=__doc__.split("\n")[0])
    parser.add_argument("--short", action="store_true", help="fewer boulders, time steps and iterations")
    parser.add_argument("--output", type=Path, default=Path(), metavar="DIR", help="where terrain.png goes")
    parser.add_argument("--particles", type=int, metavar="N", help="number of boulders (96; short: 16)")
    parser.add_argument("--steps", type=int, metavar="N", help=f"number of {TIME_STEP} s time steps (300; short: 100)")
    parser.add_argument("--iterations", type=int, metavar="N", help="number of optimisation steps (200; short: 40)")
    options = parser.parse_args(arguments)
    particles = options.particles or (16 if options.short else 96)
    steps = options.steps or (100 if options.short else 300)
    iterations = options.iterations or (40 if options.short else 200)

    scene, launch = make_scene(particles, steps)
    checks = [("start", *check_gradients(scene, launch))]
    before = simulate_loop(scene, launch)
    losses = optimise(scene, launch, iterations)
    after = simulate_loop(scene, launch)
    losses.append(float(after.loss.numpy()[0]))
    checks.append((f"after {iterations} steps", *check_gradients(scene, launch)))

    print(f"{particles} boulders, {steps} time steps of {TIME_STEP} s")
    print(f"loss before: {losses[0]:.3e} km^2, after: {losses[-1]:.3e} km^2")
    for name, outcome in (("before", before), ("after", after)):
        miss = 1000.0 * np.sqrt(outcome.misses.numpy())
        print(f"miss {name}: median {np.median(miss):.1f} m, largest {miss.max():.1f} m")
    print("gradient check (relative to the largest entry)")
    print(f"{'':20s} {'loop - launches':>18s} {'loop - differences':>18s}")
    for name, other_form, differences in checks:
        print(f"{name:20s} {other_form:18.1e} {differences:18.1e}")

    options.output.mkdir(parents=True, exist_ok=True)
    picture = options.output / "terrain.png"
    draw(picture, before.path, after.path, scene.target.numpy(), losses)
    print(f"saved {picture}")


if __name__ == "__main__":
    main()
