-- What lists, describes and drops, in every kind of catalog.
CREATE TABLE lake.db.t (id INT COMMENT 'the key', k STRING) USING iceberg PARTITIONED BY (k);
INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b');
SHOW TABLES IN lake.db;
--> ["db", "t", false]
SHOW TABLES IN lake.db LIKE 't*';
--> ["db", "t", false]
SHOW TABLES IN lake.db LIKE 'x*';
--> none
SHOW VIEWS IN lake.db;
--> none
SHOW VIEWS IN lake.db LIKE '*';
--> none
SHOW NAMESPACES IN lake;
DESCRIBE NAMESPACE lake.db;
DESCRIBE TABLE lake.db.t id;
--> ["col_name", "id"]
--> ["data_type", "int"]
--> ["comment", "the key"]
DESCRIBE EXTENDED lake.db.t;
SHOW COLUMNS IN lake.db.t;
--> ["id"]
--> ["k"]
SHOW CREATE TABLE lake.db.t;
SHOW TBLPROPERTIES lake.db.t ('format-version');
--> ["format-version", "2"]
USE lake.db;
SHOW TABLES;
--> ["db", "t", false]
SHOW VIEWS;
--> none
SELECT 'x' FROM t;
--> ["x"]
--> ["x"]
USE spark_catalog.default;
SHOW TABLES IN lake.db_gone;
--! (?i)not.found|cannot be found|no such|does not exist
SHOW VIEWS IN lake.db_gone;
--! (?i)not.found|cannot be found|no such|does not exist
DROP VIEW lake.db.v;
--! (?i)not.found|cannot be found
DROP VIEW IF EXISTS lake.db.v;
DROP VIEW lake.db.t;
--! (?i)not.a.view|view.not.found|expect.view|drop table|is.a.table
ALTER VIEW lake.db.v RENAME TO lake.db.w;
--! (?i)not.found|cannot be found
ALTER VIEW lake.db.v SET TBLPROPERTIES ('a' = 'b');
--! (?i)not.found|cannot be found
ALTER VIEW lake.db.v AS SELECT 1 AS one;
--! (?i)not.found|cannot be found
SELECT * FROM lake.db.v;
--! TABLE_OR_VIEW_NOT_FOUND
DESCRIBE lake.db.v;
--! TABLE_OR_VIEW_NOT_FOUND
DROP TABLE lake.db.v;
--! TABLE_OR_VIEW_NOT_FOUND
DROP TABLE IF EXISTS lake.db.v;
DROP TABLE lake.db.t PURGE;
SHOW TABLES IN lake.db;
--> none
