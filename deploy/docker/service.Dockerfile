# The service: `docker build -f deploy/docker/service.Dockerfile -t twinstream .` in the top folder.
#
# The same locked requirements as everywhere, checked by their hashes; docs/install.md says what pins the base.

FROM python:3.11.11-slim-bookworm AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# Without pip of its own: nothing is installed into it later.
RUN python -m venv --without-pip /opt/twinstream
COPY requirements/service.txt requirements/wheel.txt requirements/page.txt requirements/
RUN pip --python /opt/twinstream/bin/python install --require-hashes --only-binary :all: -r requirements/service.txt \
    && pip install --require-hashes --only-binary :all: -r requirements/wheel.txt \
    && pip install --require-hashes --only-binary :all: --no-deps -r requirements/page.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY service service
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/twinstream/bin/python install --no-deps --no-index dist/*.whl

FROM python:3.11.11-slim-bookworm
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin twinstream \
    && install --directory --owner=10001 --group=10001 /drill
COPY --from=build /opt/twinstream /opt/twinstream
ENV PATH=/opt/twinstream/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# By number, so that a cluster that asks for it can see that it is not root.
USER 10001:10001
WORKDIR /
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as http; http.urlopen('http://127.0.0.1:8080/healthz', timeout=3)"]
ENTRYPOINT ["twinstream"]
CMD ["--help"]
