# FairAll on a CPU, as the Makefile installs it. docs/docker.md has the commands.
ARG PYTHON=3.11
FROM python:${PYTHON}-slim

# The Makefile's make; a Debian release keeps one version of it only, so that there is none to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*

# With the number of the user who builds, results in a mounted folder are that user's.
ARG UID=1000
RUN useradd --uid "${UID}" --create-home fairall \
    && install --directory --owner fairall /fairall /fairall/outputs
USER ${UID}
WORKDIR /fairall

# pip's own variable for a second index, here one of CPU builds of torch: the default index gives the build
# for GPUs on Linux, several gigabytes larger.
ARG PIP_EXTRA_INDEX_URL
ARG PIP_NO_CACHE_DIR=1

# torch in a layer of its own, which changes with the constraints alone.
COPY --chown=fairall Makefile constraints.txt ./
RUN make .venv/torch
COPY --chown=fairall . .
RUN make .venv/installed

ENV PATH=/fairall/.venv/bin:$PATH
VOLUME /fairall/outputs
ENTRYPOINT ["python", "-m", "fairall"]
CMD ["model=fairall_I_II", "dataset=credit"]
