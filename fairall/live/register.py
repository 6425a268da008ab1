"""Versions of a ledger in MLflow's registry, with the aliases champion and challenger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairall.config.compose import places
from fairall.live.ledger import Ledger
from fairall.live.versions import Version
from fairall.tracking.logger import register as register_policy
from fairall.tracking.store import UnreachableError, connected, experiment_of, named_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

CHALLENGER = "challenger"
TAG = "fairall.version"  # number of the version in its ledger


def register(ledger: Ledger, words: Sequence[str], **aliases: int) -> None:
    """Register versions where `tracking.register=NAME` is among the words of a command.

    The configuration that the ledger stores may be a stranger's: it says neither the name nor the store.
    Prints a line for each: its address, or a warning where MLflow cannot be reached. The same words on a
    later command make that good for the versions that it names.

    Args:
        ledger: whose versions they are.
        words: of the command. The store is `tracking.uri`, MLFLOW_TRACKING_URI, or that in `outputs_dir`.
        aliases: number of the version by alias.
    """
    if not any(word.startswith("tracking") for word in words):
        return
    config = places(words)
    config.tracking.uri, name = named_uri(config), config.tracking.register
    if name is None:
        return
    with ledger.store.reading() as connection:
        versions = {number: ledger.version(connection, number) for number in aliases.values()}
    try:
        with connected(config) as client:
            experiment = experiment_of(client, config)
            for line in _register(client, experiment, ledger.store.name, name, versions, aliases):
                print(line)
    except UnreachableError as error:
        print(f"Warning: {error}")


def _register(
    client: MlflowClient,
    experiment: str,
    ledger: str,
    name: str,
    versions: Mapping[int, Version],
    aliases: Mapping[str, int],
) -> list[str]:
    """Register the versions that MLflow lacks, and move the aliases."""
    import mlflow

    from fairall.tracking.model import log_policy

    lines = []
    registered = {
        one.tags.get(TAG): str(one.version) for one in client.search_model_versions(f"name = '{name}'")
    }
    for alias, number in aliases.items():
        tags, version = {TAG: str(number)}, versions[number]
        if str(number) not in registered:
            run = client.create_run(experiment, run_name=f"{ledger}, version {number}", tags=tags).info.run_id
            with mlflow.start_run(run, nested=True), version.saved() as folder:
                log_policy(folder, version.config, tags)
            registered[str(number)] = str(register_policy(client, name, run, tags))
        model = registered[str(number)]
        client.set_registered_model_alias(name, alias, model)
        challenger = client.get_registered_model(name).aliases.get(CHALLENGER)
        if alias != CHALLENGER and str(challenger) == model:
            client.delete_registered_model_alias(name, CHALLENGER)
        lines.append(f"Registered: version {number} is models:/{name}@{alias}")
    return lines
