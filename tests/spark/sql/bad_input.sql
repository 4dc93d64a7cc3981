-- What cannot be is refused by its name, changes nothing, and the session goes on.
CREATE TABLE lake.db.t (id INT NOT NULL, k STRING) USING iceberg;
INSERT INTO lake.db.t VALUES (1, 'a');
SELECT nothing FROM lake.db.t;
--! UNRESOLVED_COLUMN.*nothing
SELECT * FROM lake.db.nothing;
--! TABLE_OR_VIEW_NOT_FOUND
SELECT * FROM lake.db.t.nothing;
--! TABLE_OR_VIEW_NOT_FOUND|nothing
SELECT * FROM lake.db.t VERSION AS OF 'nothing';
--! nothing
SELECT * FROM lake.db.t VERSION AS OF 1;
--! 1
SELECT * FROM lake.db.t TIMESTAMP AS OF '2001-01-01 00:00:00';
--! (?i)snapshot
SELECT * FROM lake.db.t.branch_nothing;
--! (?i)nothing
INSERT INTO lake.db.t.branch_nothing VALUES (2, 'b');
--! (?i)nothing
INSERT INTO lake.db.t.snapshots SELECT * FROM lake.db.t.snapshots;
--! .
INSERT INTO lake.db.t VALUES (2);
--! (?i)column
INSERT INTO lake.db.t SELECT nullif(id, 1), 'b' FROM lake.db.t;
--! (?i)null
INSERT INTO lake.db.t VALUES (3000000000, 'b');
--! .
ALTER TABLE lake.db.t ADD COLUMN k INT;
--! k
ALTER TABLE lake.db.t DROP COLUMN nothing;
--! nothing
ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(4, nothing);
--! nothing
ALTER TABLE lake.db.t ADD PARTITION FIELD days(k);
--! .
ALTER TABLE lake.db.t DROP TAG nothing;
--! nothing
ALTER TABLE lake.db.t CREATE BRANCH main;
--! main
UPDATE lake.db.t SET nothing = 1;
--! nothing
DELETE FROM lake.db.t WHERE nothing = 1;
--! nothing
CREATE TABLE lake.db.other (id INT) USING iceberg TBLPROPERTIES ('format-version' = '9');
--! 9
SHOW PARTITIONS lake.db.t;
--! hint: SELECT \* FROM .*\.partitions|PARTITION_MANAGEMENT_IS_UNSUPPORTED
ALTER TABLE lake.db.t DROP PARTITION (k = 'a');
--! hint: DELETE FROM|PARTITION_MANAGEMENT_IS_UNSUPPORTED
MSCK REPAIR TABLE lake.db.t;
--! hint: .*add_files|NOT_SUPPORTED_COMMAND_FOR_V2_TABLE
CREATE TABLE lake.db.other LIKE lake.db.nothing;
--! TABLE_OR_VIEW_NOT_FOUND|PARSE_SYNTAX_ERROR
CREATE TABLE lake.db.other (id INT, k STRING) CLUSTERED BY (id) SORTED BY (k) INTO 4 BUCKETS;
--! sorted_bucket
SELECT * FROM lake.db.t;
--> [1, "a"]
SELECT count(*) FROM lake.db.t.snapshots;
--> [1]
DROP TABLE lake.db.t;
