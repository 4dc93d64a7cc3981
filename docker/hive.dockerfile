# A Hive metastore that can reach Postgres: the images carry no driver for it.
ARG HIVE=3.1.3
ARG DEBIAN=debian:12-slim
FROM ${DEBIAN} AS driver
RUN apt-get update && apt-get install -y --no-install-recommends libpostgresql-jdbc-java

FROM apache/hive:${HIVE}
COPY --from=driver /usr/share/java/postgresql.jar /opt/hive/lib/postgresql.jar
