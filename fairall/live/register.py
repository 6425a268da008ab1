"""Versions of a ledger in MLflow's registry, with the aliases champion and challenger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from fairall.config.compose import places
from fairall.live import versions
from fairall.live.ledger import Ledger
from fairall.tracking.store import Store, UnreachableError, equal, named_uri, quiet_mlflow, reaching

CHALLENGER = "challenger"
TAG = "fairall.version"  # number of the version in its ledger


def register(ledger: Ledger, words: Sequence[str], aliases: Mapping[str, int]) -> list[str]:
    """Register versions where `tracking.register=NAME` is among the words of a command.

    The configuration that the ledger stores may be a stranger's: it says neither the name nor the store.

    Args:
        ledger: whose versions they are.
        words: of the command. The store is `tracking.uri`, MLFLOW_TRACKING_URI, or that in `outputs_dir`.
        aliases: number of the version by alias.

    Returns:
        A line for each: its address, or a warning where MLflow cannot be reached. The same words on a later
        command make that good for the versions that it names.
    """
    if not any(word.startswith("tracking") for word in words):
        return []
    config = places(words)
    config.tracking.uri, name = named_uri(config), config.tracking.register
    if name is None:
        return []
    stored = ledger.about
    with ledger.store.reading() as connection:
        policies = {
            number: versions.read(connection, stored, number, modules=ledger.modules).policy
            for number in set(aliases.values())
        }
    quiet_mlflow()
    from mlflow.exceptions import MlflowException

    def once() -> list[str]:
        store, lines = Store(config), []
        client: Any = store.client
        with suppress(MlflowException):  # where it is there; another error comes again
            client.create_registered_model(name)
        known = {one.tags.get(TAG): one.version for one in client.search_model_versions(equal("name", name))}
        for alias, number in aliases.items():
            tags, policy = {TAG: str(number)}, policies[number]
            if str(number) not in known:
                title = f"{ledger.store.name}, version {number}"
                run = client.create_run(store.experiment, run_name=title, tags=tags).info.run_id
                with versions.saved(policy) as folder:
                    model = store.log_model(
                        run, [folder], policy.reader, versions.config_of(policy), tags, {}
                    )
                client.set_terminated(run)
                made = client.create_model_version(name, f"models:/{model}", run, tags, model_id=model)
                known[str(number)] = made.version
            client.set_registered_model_alias(name, alias, known[str(number)])
            had = client.get_registered_model(name).aliases.get(CHALLENGER)
            if alias != CHALLENGER and str(had) == str(known[str(number)]):
                client.delete_registered_model_alias(name, CHALLENGER)
            lines.append(f"Registered: version {number} is models:/{name}@{alias}")
        return lines

    try:
        return reaching(config, once)
    except UnreachableError as error:
        return [f"Warning: {error}"]
