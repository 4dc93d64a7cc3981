# icecomb with Spark and hdfs-native; the build context is the project's folder.
ARG PYTHON=python:3.11-slim-bookworm
FROM ${PYTHON}
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-17-jdk-headless \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir "/src[spark,hdfs-native]"
CMD ["sleep", "infinity"]
