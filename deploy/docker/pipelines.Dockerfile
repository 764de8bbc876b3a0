# The example job in both versions, and the generator of its input:
# `docker build -f deploy/docker/pipelines.Dockerfile -t twinstream-pipelines .` in the top folder.

# Spark's Kafka connector: exactly the jars that the tests use.
FROM maven:3.9.9-eclipse-temurin-17 AS jars
COPY deploy/embedded/spark.pom.xml /build/pom.xml
RUN mvn --batch-mode --file /build/pom.xml dependency:copy-dependencies -DoutputDirectory=/jars

FROM eclipse-temurin:17.0.10_7-jre-jammy AS java

FROM python:3.11.11-slim-bookworm AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
COPY requirements/build.txt requirements/pipelines.txt requirements/
# PySpark comes as source alone; what builds it is locked, too, so that nothing is fetched unseen.
RUN pip install --require-hashes -r requirements/build.txt \
    && pip install --require-hashes --no-build-isolation --prefix /opt/python -r requirements/pipelines.txt
COPY --from=jars /jars /opt/python/lib/python3.11/site-packages/pyspark/jars

FROM python:3.11.11-slim-bookworm
# With a name: Hadoop's login asks for one. /data is for checkpoints, and the user's.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin pipelines \
    && install --directory --owner=10001 --group=10001 /data
COPY --from=java /opt/java/openjdk /opt/java
COPY --from=build /opt/python /usr/local
COPY loadtest /opt/pipelines/loadtest
COPY service/twinstream /opt/pipelines/twinstream
COPY deploy/docker/committed.py deploy/pipelines/*.py /opt/pipelines/
COPY deploy/pipelines/conf /opt/pipelines/conf
ENV JAVA_HOME=/opt/java PATH=/opt/java/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    PYTHONPATH=/opt/pipelines PYSPARK_PYTHON=/usr/local/bin/python SPARK_CONF_DIR=/opt/pipelines/conf
USER 10001:10001
WORKDIR /tmp
VOLUME /data
# Each query must have finished a micro-batch within the last minute; without input it has none to finish.
HEALTHCHECK --interval=15s --timeout=5s --start-period=2m --retries=3 \
    CMD ["python", "/opt/pipelines/committed.py", "/data", "60"]
ENTRYPOINT ["spark-submit", "--master", "local[2]"]
CMD ["/opt/pipelines/reference.py", "--help"]
