# The matcher as a Spark job, for its driver and its executors on Kubernetes:
# `docker build -f deploy/docker/spark-matcher.Dockerfile -t twinstream-spark .` in the top folder.
#
# Spark and its entry point are those of its own image; Python is that of the service's image, since the other has
# one that is too old. PySpark comes with Spark. Storage wants its own jars beside them, as hadoop-aws for S3.

# Spark's Kafka connector: exactly the jars that the tests use.
FROM maven:3.9.9-eclipse-temurin-17 AS jars
COPY deploy/embedded/spark.pom.xml /build/pom.xml
RUN mvn --batch-mode --file /build/pom.xml dependency:copy-dependencies -DoutputDirectory=/jars

FROM spark:4.0.0-scala2.13-java17-ubuntu AS spark

FROM python:3.11.11-slim-bookworm AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
RUN python -m venv --without-pip /opt/twinstream
COPY requirements/service.txt requirements/spark-matcher.txt requirements/wheel.txt requirements/page.txt requirements/
RUN pip --python /opt/twinstream/bin/python install --require-hashes --only-binary :all: \
        -r requirements/service.txt -r requirements/spark-matcher.txt \
    && pip install --require-hashes --only-binary :all: -r requirements/wheel.txt \
    && pip install --require-hashes --only-binary :all: --no-deps -r requirements/page.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY service service
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/twinstream/bin/python install --no-deps --no-index dist/*.whl \
    && ln -s lib/python3.11/site-packages/twinstream/spark/matcher/__main__.py /opt/twinstream/job.py

FROM python:3.11.11-slim-bookworm
# With a name: Hadoop's login asks for one.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin twinstream
COPY --from=spark /opt/java/openjdk /opt/java/openjdk
COPY --from=spark /usr/bin/tini /usr/bin/tini
COPY --from=spark /opt/entrypoint.sh /opt/decom.sh /opt/
COPY --from=spark /opt/spark /opt/spark
COPY --from=jars /jars /opt/spark/jars
COPY --from=build /opt/twinstream /opt/twinstream
ENV JAVA_HOME=/opt/java/openjdk SPARK_HOME=/opt/spark PYSPARK_PYTHON=/opt/twinstream/bin/python \
    PATH=/opt/twinstream/bin:/opt/spark/bin:/opt/java/openjdk/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# By number, so that a cluster that asks for it can see that it is not root.
USER 10001:10001
WORKDIR /tmp
# The operator watches the pods, and the service says when a job falls silent.
HEALTHCHECK NONE
ENTRYPOINT ["/opt/entrypoint.sh"]
CMD ["spark-submit", "--help"]
