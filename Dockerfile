# Cauce's own programs: `faust -A streams worker` (what it runs unless told otherwise) and `cauce`. There is no Java in it:
# `cauce up` and `cauce kafka` belong outside, on a machine that has one. Kafka is wherever CAUCE_BOOTSTRAP says.
# Where packages come from is the business of whoever builds: no registry is named here or in the lock files.

FROM python:3.12-slim AS build
WORKDIR /build

# One lock file serves the shipped environment and the build, as constraints: uv then installs what is asked for and what
# that needs, not the linters and test libraries, and --require-hashes still refuses whatever the lock does not list and
# any file with another digest. Wheels only: an sdist would run code of its own here, with parts that nobody locked.
COPY requirements-uv.lock requirements.lock pyproject.toml ./
ENV UV_NO_CACHE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN python -m venv tools \
    && tools/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-uv.lock \
    && tools/bin/uv venv --python "$(command -v python)" /opt/cauce \
    && tools/bin/uv pip install --python /opt/cauce/bin/python --compile-bytecode --only-binary :all: \
        --require-hashes --constraint requirements.lock --requirement pyproject.toml

# Our own code last: a change to it leaves the layer above as it was.
COPY README.md LICENSE hatch_build.py ./
COPY agents/ agents/
COPY cauce/ cauce/
COPY gateway/ gateway/
COPY infra/ infra/
COPY models/ models/
COPY producer_client/ producer_client/
COPY queries/ queries/
COPY streams/ streams/
COPY tables/ tables/
RUN tools/bin/uv build --wheel --python /opt/cauce/bin/python --require-hashes --build-constraint requirements.lock \
    && tools/bin/uv pip install --python /opt/cauce/bin/python --compile-bytecode --no-deps dist/*.whl

FROM python:3.12-slim
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/cauce cauce \
    && install -d -o cauce -g cauce /var/lib/cauce
COPY --from=build /opt/cauce /opt/cauce
ENV PATH=/opt/cauce/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER cauce
# A volume mounted here starts with this folder's owner.
WORKDIR /var/lib/cauce
# No ENTRYPOINT: any program of /opt/cauce/bin can be named, `docker run cauce cauce status` as well as the one below.
CMD ["faust", "-A", "streams", "worker"]
