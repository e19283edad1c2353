"""Flags from configuration dataclasses: a field is an option, its metadata the help, a YAML file may hold the rest."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from duologue.disk import explained_full_disk
from duologue.errors import DuologueError, did_you_mean
from duologue.values import checked_value, plain_type

Config = TypeVar("Config")


def configured(
    make: type[Config], positional: str = "env"
) -> Callable[[Callable[[Config], None]], Callable[..., None]]:
    """Turn a function of a configuration into a command with a flag for every field, and ``--config FILE.yaml``.

    Flags win over the file, the file over the defaults. A ``DuologueError`` becomes one line on stderr and exit code 2.

    Args:
        make: the configuration dataclass; each field has ``metadata["help"]``.
        positional: the field that is an argument, not a flag.
    """

    def decorate(run: Callable[[Config], None]) -> Callable[..., None]:
        def command(config: Path | None, **flags: Any) -> None:  # Typer passes exactly the parameters made below
            with_clean_errors(lambda: _run(run, load_config(make, config, flags)))

        made = parameters(make, positional)
        command.__doc__ = run.__doc__
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
        command.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
        return command

    return decorate


def _run(run: Callable[[Config], None], config: Config) -> None:
    with explained_full_disk(str(getattr(config, "output", ".")), "run the same command again."):
        run(config)


def with_clean_errors(run: Callable[[], None]) -> None:
    """Run; say a mistake of the user's in one line on stderr and exit with code 2."""
    try:
        run()
    except DuologueError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    except (FileExistsError, FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        typer.echo(
            f"error: {error.filename}: {error.strerror}. Give another path, such as --output runs/new.", err=True
        )
        raise typer.Exit(2) from None


def parameters(make: type[Any], positional: str) -> list[inspect.Parameter]:
    """Return a command's parameters: one per field of a dataclass, then ``config``. All default to None = not given."""
    hints = get_type_hints(make)
    made = [_parameter(f, hints[f.name], argument=f.name == positional) for f in fields(make)]
    option = typer.Option("--config", metavar="FILE.yaml", help="Values from a YAML file; flags win.", exists=False)
    return [*made, _keyword("config", Annotated[Path | None, option])]


def load_config(make: type[Config], path: Path | None, flags: Mapping[str, Any]) -> Config:
    """Build a configuration from a YAML file, if any, and from the flags that were given.

    Raises:
        DuologueError: for a file that cannot be read, an unknown key, a value of a wrong type, or one that the
            configuration refuses.
    """
    hints = get_type_hints(make)
    given = {name: value for name, value in flags.items() if value is not None and value != []}
    for name, value in given.items():
        if isinstance(value, list):
            given[name] = flag_pairs(_flag(name), value)
    filed = {name: _checked(name, value, hints) for name, value in read_fields(path).items()} if path else {}
    return make(**{**filed, **given})


def _parameter(field: Field[Any], hint: Any, *, argument: bool) -> inspect.Parameter:
    kind, flag, text = plain_type(hint), _flag(field.name), str(field.metadata["help"])
    if kind is dict:
        option = typer.Option(flag, help=f"{text} KEY=VALUE (repeat it) or a JSON object.", metavar="KEY=VALUE")
        return _keyword(field.name, Annotated[list[str] | None, option])
    if field.default not in (None, ""):
        text += f" [default: {_shown(flag, field.default)}]"
    if argument:
        return _keyword(field.name, Annotated[kind | None, typer.Argument(help=text)])
    name = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    return _keyword(field.name, Annotated[kind | None, typer.Option(name, help=text)])


def _shown(flag: str, default: object) -> str:
    return flag.replace("--", "--no-", default is False) if isinstance(default, bool) else str(default)


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def flag_pairs(flag: str, items: list[str]) -> dict[str, Any]:
    """Return what repeated ``KEY=VALUE`` or JSON objects of a flag hold.

    Raises:
        DuologueError: for an item that is neither.
    """
    pairs: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if item.lstrip().startswith("{"):
            parsed = _json(item)
            if not isinstance(parsed, dict):
                raise DuologueError(f"{flag} {item} is no JSON object. Quote it in the shell: {flag} '{{\"key\": 1}}'.")
            pairs |= parsed
        elif equals and key:
            pairs[key] = _json(value)
        else:
            raise DuologueError(f"{flag} {item} has no value. Write {flag} key=value.")
    return pairs


def _json(text: str) -> Any:
    """Return a JSON value, or the text itself if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_fields(path: Path) -> Mapping[str, Any]:
    """Return the fields of a YAML file.

    Raises:
        DuologueError: if it cannot be read, or holds no fields.
    """
    import yaml

    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DuologueError(f"Cannot read the file {str(path)!r}: {error.strerror}. Check the path.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DuologueError(f"{str(path)!r} is no YAML: {error}. Write lines like 'episodes: 100'.") from error
    if rows is not None and not isinstance(rows, dict):
        raise DuologueError(f"{str(path)!r} holds no fields. Write lines like 'episodes: 100'.")
    return rows or {}


def _checked(name: str, value: Any, hints: Mapping[str, Any]) -> Any:
    if name not in hints:
        raise DuologueError(f"There is no field {name!r}. {did_you_mean(str(name), hints)}")
    return checked_value(hints[name], value, name)
