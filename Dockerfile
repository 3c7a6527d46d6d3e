# A role process of the swarm, from the same small install as `make demo`.
# compose.yaml starts a store and five roles from it. tests/integration/test_container.py executes its steps.

FROM python:3.12-slim AS build
WORKDIR /build
RUN python -m venv /opt/fireswarm
COPY requirements-run.lock ./
RUN /opt/fireswarm/bin/pip install --no-cache-dir --require-hashes --requirement requirements-run.lock
COPY pyproject.toml README.md LICENSE firebase.json firestore.indexes.json firestore.rules ./
COPY packages ./packages
COPY src ./src
COPY roles ./roles
COPY mailbox ./mailbox
COPY pipelines ./pipelines
COPY schemas ./schemas
COPY skills ./skills
COPY samples ./samples
RUN /opt/fireswarm/bin/pip install --no-cache-dir --no-deps --no-build-isolation ./packages/firelite .

FROM python:3.12-slim
# git: the scout reads the history of a folder, the pipeline makes its patch.
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/* \
    && git config --system safe.directory /folder
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin fireswarm
# The root file system may be read-only: work folders of skills go to /tmp, through the link.
RUN mkdir -p /app /data/store /data/blobs && ln -s /tmp/fireswarm /app/.fireswarm
# New volumes mounted at these two folders take over their owner.
RUN chown 10001:10001 /data/store /data/blobs
COPY --from=build /opt/fireswarm /opt/fireswarm
COPY firestore.indexes.json /app/
ENV HOME=/app PATH="/opt/fireswarm/bin:$PATH" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER 10001:10001
# The exec form makes the role process PID 1, so SIGTERM reaches it: it drains and ends with 0.
ENTRYPOINT ["swarm"]
CMD ["role", "scout"]
