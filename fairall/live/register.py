"""Versions of a ledger in MLflow's registry, with the aliases champion and challenger."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import requires
from typing import Any

from fairall.live import versions
from fairall.live.ledger import Ledger
from fairall.tracking.store import UnreachableError, quiet_mlflow, reaching

CHALLENGER = "challenger"
TAG = "fairall.version"  # number of the version in its ledger


def register(ledger: Ledger, aliases: dict[str, int]) -> list[str]:
    """Register versions where `tracking.register=NAME` was among the words of the ledger.

    Args:
        ledger: whose versions they are.
        aliases: number of the version by alias.

    Returns:
        A line for each: its address, or a warning where MLflow cannot be reached. The next command makes that
        good for the versions that it names.
    """
    kept = ledger.about
    with ledger.store.reading() as connection:
        found = {
            number: versions.read(connection, kept, number, modules=ledger.modules)
            for number in set(aliases.values())
        }
    config = versions.config_of(next(iter(found.values())).policy)
    name = config.tracking.register
    if not config.tracking.enabled or name is None:
        return []
    quiet_mlflow()
    from mlflow.exceptions import MlflowException
    from mlflow.models import Model

    from fairall.tracking import model as flavor
    from fairall.tracking.store import Store, equal

    def once() -> list[str]:
        store, lines = Store(config), []
        client: Any = store.client
        with suppress(MlflowException):  # where it is there; another error comes again
            client.create_registered_model(name)
        known = {one.tags.get(TAG): one.version for one in client.search_model_versions(equal("name", name))}
        for alias, number in aliases.items():
            tags, policy = {TAG: str(number)}, found[number].policy
            if str(number) not in known:
                title = f"{ledger.store.name}, version {number}"
                run = client.create_run(store.experiment, run_name=title, tags=tags).info.run_id
                model = client.create_logged_model(store.experiment, "policy", run, tags, {}).model_id
                with versions.saved(policy) as folder:
                    Model.log(
                        None,
                        flavor,
                        run_id=run,
                        model_id=model,
                        files=[folder],
                        modules=[config.model["_target_"].rpartition(".")[0]],
                        reader=policy.reader,
                        seeds=policy.seeds,
                        requirements=[one for one in requires("fairall") or [] if "extra ==" not in one],
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
