"""Whole runs: groups, logs, what breaks on the way, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl import GRPOConfig

from duologue.engines.models import LoadedModel, load_model
from duologue.errors import DuologueError
from duologue.trainers.config import InteractiveConfig
from duologue.trainers.interactive import InteractiveTrainer, env_maker, seed_rows
from duologue.trainers.progress import quiet_console
from duologue.trainers.trl_config import grpo_config
from duologue.types import Dialogue, StopReason, UserTurn

MakeTrainer = Callable[..., InteractiveTrainer]
MakeConfig = Callable[..., InteractiveConfig]


def test_groups_share_task_and_user_and_steps_do_not(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    made = trainer(steps=3)
    made.train()
    episodes = made.episodes.read()
    groups = [episodes[i : i + 4] for i in range(0, 24, 4)]
    assert all(len({(e.seed, e.task_id, e.messages[0]["content"]) for e in group}) == 1 for group in groups)
    assert all(len({e.completion_ids for e in group}) > 1 for group in groups)
    assert len({group[0].seed for group in groups}) == 6
    assert [{s.policy_version for e in episodes[i : i + 8] for s in e.spans} for i in (0, 8, 16)] == [{0}, {1}, {2}]


def test_metrics_say_what_happened(trainer: MakeTrainer) -> None:
    made = trainer(steps=1)
    made.train()
    [row] = made.metrics
    episodes = made.episodes.read()
    assert row["reward"] == pytest.approx(sum(e.reward or 0.0 for e in episodes) / 8)
    assert row["dialogue/turns"] == sum(e.n_turns for e in episodes) / 8
    assert row["dialogue/policy_tokens"] == sum(sum(e.completion_mask) for e in episodes) / 8
    assert row["num_tokens"] == sum(len(e.prompt_ids) + len(e.completion_ids) for e in episodes)
    stops = {name: value for name, value in row.items() if name.startswith("stop/")}
    assert stops == {
        f"stop/{r}": sum(e.stop_reason == r for e in episodes) / 8 for r in {e.stop_reason for e in episodes}
    }
    expected = "loss grad_norm learning_rate entropy step_time seconds/agent seconds/env dialogue/distinct_replies"
    assert set(expected.split()) <= row.keys()


def test_the_same_seed_is_the_same_run_and_another_is_not(trainer: MakeTrainer, tmp_path: Any) -> None:
    runs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        made = trainer(steps=1, seed=seed, output=str(tmp_path / name))
        made.train()
        runs.append([e.completion_ids for e in made.episodes.read()])
    assert runs[0] == runs[1] != runs[2]


def dead(dialogue: Dialogue) -> UserTurn | None:
    if dialogue.messages and dialogue.task.task_id == "red":
        raise OSError("no line")
    return None


def junk(dialogue: Dialogue) -> object:
    return 7 if dialogue.messages and dialogue.task.task_id == "red" else None


def mute(dialogue: Dialogue) -> UserTurn | None:
    return UserTurn("", stop=StopReason.TURN_LIMIT) if dialogue.task.task_id == "red" else None


@pytest.mark.parametrize("trick", [dead, junk, mute])
def test_a_user_that_breaks_costs_its_dialogues_and_not_the_run(
    trainer: MakeTrainer, world: SimpleNamespace, trick: Callable[[Dialogue], Any]
) -> None:
    made = trainer(env={"simulator": world.Wants(trick), "reward": world.graded}, steps=3)
    made.train()
    broken = [e for e in made.episodes.read() if e.stop_reason is StopReason.SIMULATOR_ERROR]
    assert 0 < len(broken) < 24
    assert {e.task_id for e in broken} == {"red"}
    assert all(e.reward is None and e.error and "check_simulator" in e.error for e in broken if e.messages)
    assert sum(row["dialogue/unscored"] for row in made.metrics) * 8 == len(broken)
    assert all(torch.isfinite(p).all() for p in made.trainer.model.parameters())


def test_a_user_that_hangs_costs_seconds_and_not_the_run(trainer: MakeTrainer, world: SimpleNamespace) -> None:
    def hang(dialogue: Dialogue) -> UserTurn | None:
        return world.hang(dialogue) if dialogue.messages and dialogue.seed % 2 else None

    made = trainer(env={"simulator": world.Wants(hang), "timeout": 0.1, "max_turns": 2}, steps=1)
    made.train()
    broken = [e for e in made.episodes.read() if e.reward is None]
    assert broken
    assert all("did not answer in 0.1 s" in str(e.error) for e in broken)


def test_bfloat16_on_a_cpu(model_folder: Any, settings: MakeConfig, world: SimpleNamespace) -> None:
    config = settings(dtype="bfloat16", lora_rank=4, learning_rate=1e-2)
    loaded = load_model(str(model_folder), dtype="bfloat16", device="cpu")
    made = InteractiveTrainer(config, make_env=lambda n: world.make_env(n, reward=world.graded), loaded=loaded)
    made.train()
    assert next(made.trainer.model.parameters()).dtype == torch.bfloat16
    assert [row["step"] for row in made.metrics] == [1, 2]


def test_rows_of_the_dataset_are_seeds(settings: MakeConfig) -> None:
    rows = seed_rows(settings(steps=3, groups_per_step=2))
    assert len(set(rows["seed"])) == 6
    assert rows["seed"] == seed_rows(settings(steps=5))["seed"][:6]
    assert not set(rows["seed"]) & set(seed_rows(settings(seed=1))["seed"])


def test_translation_to_trl(settings: MakeConfig) -> None:
    with quiet_console():
        made = grpo_config(settings(micro_batch_size=2, save_steps=3, scale_rewards=False, trl={"weight_decay": 0.5}))
    assert isinstance(made, GRPOConfig)
    assert (made.per_device_train_batch_size, made.gradient_accumulation_steps) == (2, 4)
    assert (made.steps_per_generation, made.num_iterations, made.num_generations) == (4, 1, 4)
    assert (made.scale_rewards, made.save_strategy, made.save_steps) == ("none", "steps", 3)
    assert (made.top_p, made.top_k, made.temperature) == (1.0, 0, 1.0)
    assert (made.max_completion_length, made.weight_decay) == (100, 0.5)


@pytest.mark.parametrize(
    ("trl", "message"),
    [
        ({"wieght_decay": 0.1}, r"trl has no field 'wieght_decay'. Did you mean 'weight_decay'\?"),
        ({"zzz": 1}, r"trl has no field 'zzz'. See the fields of trl.GRPOConfig."),
        ({"num_generations": 2}, r"trl.num_generations is set by group_size. Set that instead."),
        ({"max_steps": 9}, r"trl.max_steps is set by steps. Set that instead."),
        ({"top_p": 0.9}, r"trl.top_p is not for dialogues: it would bias .*[.] Leave it out.$"),
        ({"top_p": 0}, r"trl.top_p is not for dialogues: it would bias .*[.] Leave it out.$"),
        ({"vllm_importance_sampling_correction": True}, r"weighed one by one .*[.] Leave it out.$"),
        ({"steps_per_generation": 3, "generation_batch_size": 8}, r"TRL refuses the configuration: .*[.]$"),
    ],
)
def test_what_trl_does_not_know_is_refused(settings: MakeConfig, trl: dict[str, Any], message: str) -> None:
    with quiet_console(), pytest.raises(DuologueError, match=message):
        grpo_config(settings(trl=trl))


def test_two_who_would_sample_are_refused(settings: MakeConfig) -> None:
    with pytest.raises(DuologueError, match=r"each name who samples\. Leave one out\.$"):
        grpo_config(settings(engine="sglang:http://127.0.0.1:1", trl={"use_vllm": True}))
    with quiet_console():
        grpo_config(settings(trl={"top_p": 1.0, "top_k": 0, "min_p": 0.0, "use_vllm": False}))


def test_the_environment_is_made_from_the_configuration(model_folder: Any, settings: MakeConfig) -> None:
    made = InteractiveTrainer(settings(env="MathChat-v0", tasks="math:level=1,split=train", max_turns=2, steps=1))
    assert made.env.num_envs == 8
    made.train()
    episodes = made.episodes.read()
    assert {e.env_id for e in episodes} == {"MathChat-v0"}
    assert max(e.n_turns for e in episodes) <= 2


def test_a_base_model_is_refused(settings: MakeConfig, load: Callable[[], LoadedModel], world: SimpleNamespace) -> None:
    loaded = load()
    loaded.tokenizer.chat_template = None
    with pytest.raises(DuologueError, match=r"no chat template.*Use an instruction-tuned model"):
        InteractiveTrainer(settings(), make_env=world.make_env, loaded=replace(loaded))


def test_files_are_json_lines(trainer: MakeTrainer) -> None:
    made = trainer(steps=1)
    final = made.train()
    for name in ("episodes.jsonl", "metrics.jsonl"):
        for line in (made.output / name).read_text().splitlines():
            json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert final == made.output / "final"
    assert {path.name for path in final.iterdir()} >= {"model.safetensors", "config.json", "tokenizer.json"}


@pytest.mark.parametrize("env", ["MathChat-v1", "CartPole-v1", "MathsChat-v0"])
def test_an_unknown_environment_is_named_with_the_nearest(env: str) -> None:
    with pytest.raises(DuologueError, match="MathChat-v0"):
        env_maker(InteractiveConfig(env=env))(2)
