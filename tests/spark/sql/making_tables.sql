-- Every type, every partition transform, nested values; what they are is what comes back.
CREATE TABLE lake.db.kinds (
  flag BOOLEAN, small INT, big BIGINT, thin FLOAT, wide DOUBLE, price DECIMAL(9, 2), day DATE, at TIMESTAMP,
  local_at TIMESTAMP_NTZ, what STRING, raw BINARY,
  place STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>, counts MAP<STRING, BIGINT>) USING iceberg;
INSERT INTO lake.db.kinds VALUES (
  true, 1, 9223372036854775807, CAST(1.5 AS FLOAT), 2.25D, 1234567.89, DATE '2026-02-28', TIMESTAMP '2026-01-01 10:00:00.123456',
  TIMESTAMP_NTZ '1969-12-31 23:59:59.999999', 'ä/ö=?', X'00FF', named_struct('city', 'Bonn', 'zip', 53111), array('a', NULL),
  map('one', 1L, 'none', NULL));
INSERT INTO lake.db.kinds VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT flag, small, big, thin, wide, price FROM lake.db.kinds ORDER BY small NULLS LAST;
--> [true, 1, 9223372036854775807, 1.5, 2.25, "1234567.89"]
--> [null, null, null, null, null, null]
SELECT day, CAST(at AS STRING), CAST(local_at AS STRING), what, raw FROM lake.db.kinds WHERE flag;
--> ["2026-02-28", "2026-01-01 10:00:00.123456", "1969-12-31 23:59:59.999999", "ä/ö=?", "00ff"]
SELECT place.city, place.zip, tags[0], tags[1], size(tags), counts['one'], counts['none'] FROM lake.db.kinds WHERE flag;
--> ["Bonn", 53111, "a", null, 2, 1, null]
SELECT count(*), count(place), count(tags), count(counts) FROM lake.db.kinds;
--> [2, 1, 1, 1]

CREATE TABLE lake.db.parts (id BIGINT NOT NULL COMMENT 'the key', at TIMESTAMP, what STRING, n INT) USING iceberg
  PARTITIONED BY (days(at), bucket(16, id), truncate(2, what), n) COMMENT 'what happened'
  TBLPROPERTIES ('write.target-file-size-bytes' = '1048576');
INSERT INTO lake.db.parts VALUES
  (1, TIMESTAMP '2026-01-01 10:00:00', 'open', 1), (2, TIMESTAMP '2026-01-02 11:00:00', 'close', NULL),
  (3, NULL, 'ä/ö=?', 3), (4, TIMESTAMP '1969-12-31 23:59:59.999999', NULL, -1);
SELECT id FROM lake.db.parts WHERE at < TIMESTAMP '1970-01-01 00:00:00';
--> [4]
SELECT id FROM lake.db.parts WHERE what LIKE 'op%' OR n IS NULL ORDER BY id;
--> [1]
--> [2]
SELECT id, what FROM lake.db.parts WHERE id IN (2, 3) ORDER BY id;
--> [2, "close"]
--> [3, "ä/ö=?"]
SELECT id FROM lake.db.parts WHERE at IS NULL;
--> [3]
DROP TABLE lake.db.kinds;
DROP TABLE lake.db.parts;

-- years, months, hours of dates and timestamps; void comes from dropping a field only
CREATE TABLE lake.db.times (id INT, day DATE, at TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (months(day), hours(at));
INSERT INTO lake.db.times VALUES (1, DATE '1969-12-31', TIMESTAMP_NTZ '1969-12-31 22:30:00'), (2, DATE '2026-02-01', NULL);
SELECT id FROM lake.db.times WHERE day < DATE '1970-01-01';
--> [1]
SELECT id FROM lake.db.times WHERE day >= DATE '2026-01-31' AND at IS NULL;
--> [2]
DROP TABLE lake.db.times;

-- CREATE ... AS SELECT, REPLACE ... AS SELECT, IF NOT EXISTS
CREATE TABLE lake.db.source USING iceberg AS SELECT CAST(id AS INT) AS id, CAST(id % 3 AS STRING) AS part FROM range(9);
CREATE TABLE lake.db.copy USING iceberg PARTITIONED BY (part) AS SELECT * FROM lake.db.source WHERE id < 5;
SELECT part, count(*), sum(id) FROM lake.db.copy GROUP BY part ORDER BY part;
--> ["0", 2, 3]
--> ["1", 2, 5]
--> ["2", 1, 2]
CREATE TABLE IF NOT EXISTS lake.db.copy (other STRING) USING iceberg;
REPLACE TABLE lake.db.copy USING iceberg AS SELECT id + 100 AS id, 'new' AS what FROM lake.db.source WHERE id = 8;
SELECT * FROM lake.db.copy;
--> [108, "new"]
CREATE OR REPLACE TABLE lake.db.copy (only INT) USING iceberg;
SELECT count(*) FROM lake.db.copy;
--> [0]
CREATE TABLE lake.db.copy (id INT) USING iceberg;
--! already exists
DROP TABLE lake.db.copy;
DROP TABLE lake.db.source;
SELECT * FROM lake.db.copy;
--! TABLE_OR_VIEW_NOT_FOUND
