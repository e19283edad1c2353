"""A plan: tokens, prefix cache, memory, network and time of one step, and of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from duologue.analysis.plan.memory import Batch, Memory, cache_bytes, kept_rows, layer_bytes, training_memory
from duologue.analysis.plan.run import Run
from duologue.analysis.plan.shape import Shape
from duologue.analysis.plan.table import Line, Section
from duologue.analysis.plan.work import Seconds, best_split, exchange_bytes, step_flops, sync_bytes

GB = 1e9
TOGETHER, SHARDED, PLAYS, TRAINS = "together", "together, FSDP", "plays", "trains"
SIDE_BY_SIDE = "side by side"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs."""

    tokens: Section
    prefix: Section
    memory: Section
    network: Section
    seconds: Section

    @property
    def sections(self) -> tuple[Section, ...]:
        """Return all of it, in order."""
        return self.tokens, self.prefix, self.memory, self.network, self.seconds


def plan(run: Run) -> Plan:
    """Work out what a run needs, from its numbers alone."""
    return Plan(_tokens(run), _prefix(run), _memory(run), _network(run), _seconds(run))


def playing_gpus(run: Run) -> int:
    """Return how many GPUs play where playing and training run side by side; 0 if there is only one device."""
    if run.machine.devices < 2:
        return 0
    one = _flops_seconds(run)
    return best_split(one.rollout, one.training, run.machine.devices)


def _flops_seconds(run: Run) -> Seconds:
    return step_flops(run.shape, run.user, run.lengths, checkpoints=run.gpu).seconds(run.machine)


def _tokens(run: Run) -> Section:
    one, n = run.lengths, run.lengths.dialogues
    rows = (
        ("dialogues", n, "", "groups_per_step x group_size"),
        ("turns of a dialogue", one.turns, "turns", run.source),
        ("opening", one.opening, "tokens", f"before the first turn; {run.source}"),
        ("said in a turn", one.said, "tokens", f"sampled by the policy; {run.source}"),
        ("heard in between", one.heard, "tokens", f"user and template; {run.source}"),
        ("tokens of a dialogue", one.total, "tokens", "turns x said + opening + (turns - 1) x heard"),
        ("turns", n * one.turns, "turns", "dialogues x turns of a dialogue"),
        ("sampled", n * one.sampled, "tokens", "dialogues x turns x said"),
        ("user and template", n * one.user, "tokens", "dialogues x (opening + (turns - 1) x heard)"),
        ("trained on", n * one.total, "tokens", "dialogues x tokens of a dialogue"),
    )
    return Section("Tokens of a step", ("value",), [Line(name, (v,), unit, how) for name, v, unit, how in rows])


def _prefix(run: Run) -> Section:
    one = run.lengths
    ways = (one.prefill_plain, one.prefill_cached, one.prefill_shared)
    formula = "none: t o + (s + h) t (t - 1) / 2; dialogue: o + (t - 1)(h + 1); group: o / group_size + (t - 1)(h + 1)"
    lines = [
        Line("prompt tokens computed", tuple(one.dialogues * way for way in ways), "tokens", f"dialogues x; {formula}"),
        Line("saved", tuple(1 - way / ways[0] for way in ways), "share", "1 - computed / computed without cache"),
    ]
    return Section("Prefix cache: t turns, opening o, said s, heard h", ("none", "dialogue", "group"), lines)


def _memory(run: Run) -> Section:
    ways = _memory_ways(run)
    formulas = _memory_formulas(run)
    lines = [
        Line(f.name, tuple(getattr(m, f.name) / GB for m in ways.values()), "GB", formulas[f.name])
        for f in fields(Memory)
    ]
    each = "GPU" if run.gpu else "process"
    lines += [
        Line("sum", tuple(m.total / GB for m in ways.values()), "GB", "of all above"),
        Line("free", tuple(run.machine.memory_gb - m.total / GB for m in ways.values()), "GB", "memory_gb - sum"),
    ]
    return Section(f"Memory of a {each} ({run.machine.memory_gb:g} GB)", tuple(ways), lines)


def _memory_ways(run: Run) -> dict[str, Memory]:
    g, shape = run.machine.devices, run.shape
    ways = {TOGETHER: _together(run, shape, 1)}
    if g > 1:
        ways[SHARDED] = _together(run, shape, g)
    if shape.adapters:
        full = replace(shape, trained_parameters=shape.parameters)
        ways["every weight" + (", FSDP" if g > 1 else "")] = _together(run, full, g)
    if plays := playing_gpus(run):
        rows = run.lengths.dialogues / plays
        cache = cache_bytes(shape, rows * run.lengths.total, run.width)
        weights = training_memory(shape, Batch(0, 0, True), run.width, shards=1, shard_weights=False).weights
        ways[PLAYS] = Memory(weights, cache=cache, user=_user_bytes(run))
        shards = g - plays
        ways[TRAINS] = training_memory(shape, _batch(run), run.width, shards=shards, shard_weights=shards > 1)
    return ways


def _together(run: Run, shape: Shape, shards: int) -> Memory:
    """Return the memory of a process that plays and trains."""
    rows = kept_rows(run.lengths.dialogues / run.machine.devices)
    trains = training_memory(shape, _batch(run), run.width, shards=shards, shard_weights=shards > 1)
    gathered = run.width * shape.parameters if shards > 1 else 0.0
    cache = cache_bytes(shape, rows * run.lengths.total, run.width)
    return replace(trains, weights=trains.weights + gathered, cache=cache, user=_user_bytes(run))


def _batch(run: Run) -> Batch:
    rows = run.config.micro_batch_size
    return Batch(rows * run.lengths.total, rows * run.lengths.sampled, run.gpu)


def _user_bytes(run: Run) -> float:
    return run.width * run.user.parameters if run.user else 0.0


def _memory_formulas(run: Run) -> dict[str, str]:
    b = run.width
    trained = f"4 N_trained of adapters, {b} N of every weight" if run.shape.adapters else f"{b} N"
    layer = f"{layer_bytes(run.shape, b):,.0f}"
    kept = f"layers x hidden x {b} + {layer}" if run.gpu else f"layers x {layer}"
    tile = ", in tiles of at most 4096 x 32768" if run.gpu else ""
    return {
        "weights": f"{b} N + 4 N_trained of adapters; FSDP: / GPUs, + {b} N gathered to play",
        "gradients": f"{trained}; FSDP: / GPUs that train",
        "optimiser": "2 x gradients (the moments of AdamW)",
        "activations": f"micro_batch_size x tokens x ({kept} + last norm)",
        "logits": f"2 x 4 x micro_batch_size x turns x said x vocabulary{tile}",
        "cache": f"rows x tokens x 2 x layers x kv_heads x head_size x {b}; together: 2 rows a dialogue + batch",
        "user": f"{b} N_user" if run.user else "no model of its own, or served elsewhere",
    }


def _network(run: Run) -> Section:
    shape, width = run.shape, run.width
    full = replace(shape, trained_parameters=shape.parameters)
    ways = {"adapters": shape, "every weight": full} if shape.adapters else {"every weight": full}
    plays, speed = playing_gpus(run), run.machine.network_gbs
    synced = [sync_bytes(way, width) / GB for way in ways.values()]
    trains = max(1, run.machine.devices - plays)
    passes = -(-run.passes // trains)
    swapped = [exchange_bytes(w, width, trains, passes, shard_weights=not w.adapters) / GB for w in ways.values()]
    lines = [
        Line("one engine, a sync", tuple(synced), "GB", "4 N_trained for adapters, b N for every weight"),
        Line("engines", (plays,) * len(ways), "", "one per GPU that plays; 0 = it reads the trainer's own weights"),
        Line("all engines, a sync", tuple(plays * s for s in synced), "GB", "engines x one engine"),
        Line("sync", tuple(plays * s / speed for s in synced), "s", f"all engines / {speed:g} GB/s, one after another"),
        Line(
            "gradients, a step",
            tuple(swapped),
            "GB",
            "adapters: 2 (g - 1) / g x 4 N_trained; FSDP: passes x (g - 1) / g x 3 b N; per GPU, g that train",
        ),
    ]
    return Section("Network", tuple(ways), lines)


def _seconds(run: Run) -> Section:
    """Return the time of a step: all GPUs play and then train; or some play while others train the last step."""
    one, g, plays = _flops_seconds(run), run.machine.devices, playing_gpus(run)
    ways: tuple[str, ...] = (TOGETHER,)
    counts = [(g, g)]
    if plays:
        ways, counts = (TOGETHER, SIDE_BY_SIDE), [(g, g), (plays, g - plays)]
    speed = run.machine.network_gbs * GB
    sync = [0.0, plays * sync_bytes(run.shape, run.width) / speed][: len(ways)]
    swap = [_exchange_seconds(run, trains) for _, trains in counts]
    train = [one.training / trains for _, trains in counts]
    play = [one.rollout / playing for playing, _ in counts]
    step = [train[0] + swap[0] + play[0], *(max(play[i], train[i] + swap[i]) + sync[i] for i in range(1, len(ways)))]
    reads, writes = run.machine.training_utilisation, run.machine.generation_utilisation
    peak = f"{run.machine.tflops:g} TFLOP/s"
    work = "(4 N + 6 N_trained) T" if run.shape.adapters else "6 N T"
    again = " + 2 N T for checkpoints" if run.gpu else ""
    rows = (
        ("GPUs that play", [p for p, _ in counts], "", "side by side: the split that ends both at one time"),
        ("GPUs that train", [t for _, t in counts], "", "GPUs; side by side: the others"),
        ("reading prompts", [one.prefill / p for p, _ in counts], "s", f"2 N T / ({peak} x {reads:g}), cache on"),
        ("sampling", [one.decode / p for p, _ in counts], "s", f"2 N T / ({peak} x {writes:g})"),
        ("user", [one.user / p for p, _ in counts], "s", "the same two with N_user; scripted users and rewards: 0"),
        ("training", train, "s", f"({work}{again}) / ({peak} x {reads:g})"),
        ("exchange", swap, "s", "gradients of a step / network_gbs"),
        ("sync", sync, "s", "weights to all engines / network_gbs"),
        ("step", step, "s", "together: the sum; side by side: the longer of both + sync, one step behind"),
        ("run", [s * run.config.steps / 3600 for s in step], "hours", "steps x step"),
    )
    return Section("Time of a step", ways, [Line(name, tuple(v), unit, how) for name, v, unit, how in rows])


def _exchange_seconds(run: Run, gpus: int) -> float:
    passes = -(-run.passes // gpus)
    sent = exchange_bytes(run.shape, run.width, gpus, passes, shard_weights=not run.shape.adapters)
    return sent / (run.machine.network_gbs * GB)
