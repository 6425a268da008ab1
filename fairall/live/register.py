"""Versions of a ledger in MLflow's registry, with the aliases champion and challenger."""

from __future__ import annotations

from collections.abc import Sequence

from fairall.config.compose import places
from fairall.live.ledger import Ledger
from fairall.tracking.logger import register as register_policy
from fairall.tracking.store import UnreachableError, connected, experiment_of, named_uri

CHALLENGER = "challenger"
TAG = "fairall.version"  # number of the version in its ledger


def register(ledger: Ledger, words: Sequence[str], alias: str, number: int) -> None:
    """Register a version, if need be, and move an alias, where a word of a command is tracking.register=NAME.

    The configuration that the ledger stores may be a stranger's: it says neither the name nor the store.
    Prints the address, or a warning where MLflow cannot be reached. The same words on a later command make
    that good.

    Args:
        ledger: whose version it is.
        words: of the command. The store is `tracking.uri`, MLFLOW_TRACKING_URI, or that in `outputs_dir`.
        alias: `champion` or `challenger`.
        number: of the version.
    """
    if not any(word.startswith("tracking") for word in words):
        return
    config = places(words)
    config.tracking.uri, name = named_uri(config), config.tracking.register
    if name is None:
        return
    with ledger.store.reading() as connection:
        version = ledger.version(connection, number)
    try:
        with connected(config) as client:
            import mlflow

            from fairall.tracking.model import log_policy

            tags, found = {TAG: str(number)}, client.search_model_versions(f"name = '{name}'")
            models = [one.version for one in found if one.tags.get(TAG) == str(number)]
            if not models:
                title = f"{ledger.store.name}, version {number}"
                run = client.create_run(experiment_of(client, config), run_name=title, tags=tags).info.run_id
                with mlflow.start_run(run, nested=True), version.saved() as folder:
                    log_policy(folder, version.config, tags)
                models = [register_policy(client, name, run, tags)]
            client.set_registered_model_alias(name, alias, str(models[0]))
            aliases = client.get_registered_model(name).aliases
            if alias != CHALLENGER and aliases.get(CHALLENGER) == aliases[alias]:
                client.delete_registered_model_alias(name, CHALLENGER)
        print(f"Registered: version {number} is models:/{name}@{alias}")
    except UnreachableError as error:
        print(f"Warning: {error}")
