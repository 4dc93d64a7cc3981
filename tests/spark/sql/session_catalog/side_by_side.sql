-- Hive tables and Iceberg tables under their own names, in Spark's own catalog.
USE lake.db;
CREATE TABLE plain (id INT, kind STRING) STORED AS PARQUET;
CREATE TABLE source (id INT, kind STRING) USING parquet;
CREATE TABLE ours (id INT, kind STRING) USING iceberg PARTITIONED BY (bucket(4, id));
INSERT INTO plain VALUES (1, 'a'), (2, 'b');
INSERT INTO ours SELECT id + 10, kind FROM plain;
INSERT INTO source SELECT * FROM ours;
SELECT * FROM source ORDER BY id;
--> [11, "a"]
--> [12, "b"]
SELECT plain.id, ours.id FROM plain JOIN ours USING (kind) ORDER BY 1;
--> [1, 11]
--> [2, 12]
MERGE INTO ours USING plain ON ours.kind = plain.kind AND plain.id = 1
WHEN MATCHED THEN UPDATE SET id = plain.id
WHEN NOT MATCHED THEN INSERT *;
SELECT id FROM lake.db.ours ORDER BY id;
--> [1]
--> [2]
--> [12]
-- CREATE TABLE … AS, both ways
CREATE TABLE ours_of_plain USING iceberg AS SELECT * FROM plain;
CREATE TABLE plain_of_ours STORED AS PARQUET AS SELECT * FROM ours;
CREATE OR REPLACE TABLE ours_of_plain USING iceberg AS SELECT id FROM ours_of_plain WHERE id = 2;
SELECT * FROM ours_of_plain;
--> [2]
SELECT count(*) FROM lake.db.ours_of_plain.snapshots;
--> [2]
SELECT count(*) FROM plain_of_ours;
--> [3]
SELECT count(*) FROM lake.db.plain_of_ours.snapshots;
--! REQUIRES_SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND
-- nothing takes the place of a table of another kind
CREATE OR REPLACE TABLE plain USING iceberg AS SELECT 1 AS id;
--! (?i)not an iceberg table
CREATE TABLE plain (id INT) USING iceberg;
--! TABLE_OR_VIEW_ALREADY_EXISTS
CREATE TABLE ours (id INT) STORED AS PARQUET;
--! (?i)ALREADY.EXISTS
SELECT count(*) FROM plain;
--> [2]
-- altering
ALTER TABLE ours ADD COLUMN note STRING;
ALTER TABLE plain ADD COLUMNS (note STRING);
ALTER TABLE ours ADD PARTITION FIELD kind;
ALTER TABLE ours CREATE BRANCH audit;
ALTER TABLE plain CREATE BRANCH audit;
--! (?i)iceberg
INSERT INTO lake.db.ours.branch_audit VALUES (50, 'c', 'later');
SELECT count(*) FROM lake.db.ours.branch_audit;
--> [4]
SELECT * FROM ours VERSION AS OF 'nothing';
--! nothing
SELECT * FROM lake.db.ours.nothing;
--! REQUIRES_SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND
CALL spark_catalog.system.fast_forward(table => 'lake.db.ours', branch => 'main', to => 'audit');
SELECT id, note FROM ours WHERE note IS NOT NULL;
--> [50, "later"]
ALTER TABLE ours RENAME TO lake.db.renamed;
ALTER TABLE plain RENAME TO plain_renamed;
SELECT count(*) FROM renamed JOIN plain_renamed USING (kind);
--> [3]
-- a view of Spark's own over both
CREATE VIEW both AS SELECT kind FROM renamed UNION ALL SELECT kind FROM plain_renamed;
SELECT count(*) FROM both;
--> [6]
SELECT * FROM lake.db.both.snapshots;
--! REQUIRES_SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND
TRUNCATE TABLE renamed;
SELECT count(*) FROM both;
--> [2]
ANALYZE TABLE plain_renamed COMPUTE STATISTICS;
-- temporary views are tables, too
SHOW TABLES LIKE 'both|ours*|plain*|renamed|source';
--> ["db", "both", false]
--> ["db", "ours_of_plain", false]
--> ["db", "plain_of_ours", false]
--> ["db", "plain_renamed", false]
--> ["db", "renamed", false]
--> ["db", "source", false]
DROP VIEW both;
DROP TABLE renamed;
DROP TABLE renamed;
--! TABLE_OR_VIEW_NOT_FOUND
DROP TABLE ours_of_plain;
DROP TABLE IF EXISTS ours_of_plain;
DROP TABLE source;
DROP TABLE plain_of_ours;
DROP TABLE plain_renamed;
USE spark_catalog.default;
