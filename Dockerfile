# Two images from one file. Both run without root and without network.
#
#   docker build --target check -t dpredact:check .    the gate: no torch
#   docker build --target full  -t dpredact:full  .    rewrite with the embedded model too
#
#   docker run --rm --network none -v "$PWD:/data" dpredact:check check docs
#   docker run --rm --network none -v "$PWD:/data" -v dpredact-state:/state dpredact:full \
#       rewrite docs -o clean --policy dpredact.yaml
#
# Files are written as user 10001; add `--user "$(id -u):$(id -g)"` to write as yourself.
# /state keeps the journal and its key: without a volume, a job cannot be resumed.

FROM python:3.11-slim AS base
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DPREDACT_CACHE=/models \
    DPREDACT_STATE=/state \
    HF_HUB_OFFLINE=1 \
    HOME=/tmp
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin dpredact \
    && mkdir -p /models /state /data \
    && chown dpredact:dpredact /state /data \
    && chmod 1777 /state
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY dpredact ./dpredact

FROM base AS check
RUN pip install -c constraints.txt '.[sign]' \
    && dpredact models fetch en-core-web-sm \
    && dpredact models fetch rampart \
    && chmod -R a+rX /models
USER 10001:10001
WORKDIR /data
ENTRYPOINT ["dpredact"]
CMD ["check", "."]

FROM base AS full
# The CPU build of torch, where the index has one under the pinned version.
RUN pip install -c constraints.txt '.[lm,sign]' \
    && dpredact models fetch \
    && chmod -R a+rX /models
USER 10001:10001
WORKDIR /data
ENTRYPOINT ["dpredact"]
CMD ["--help"]
