-- Tables and views get other names; a view whose query can no longer be read is changed and dropped.
CREATE TABLE lake.db.t (id INT) USING iceberg;
ALTER TABLE lake.db.t RENAME TO lake.db.u;
CREATE VIEW lake.db.v AS SELECT id FROM lake.db.u;
SHOW VIEWS IN lake.db;
--> ["db", "v", false]
ALTER VIEW lake.db.v RENAME TO lake.db.w;
DROP TABLE lake.db.u;
SELECT * FROM lake.db.w;
--! TABLE_OR_VIEW_NOT_FOUND
SHOW VIEWS IN lake.db;
--> ["db", "w", false]
DESCRIBE lake.db.w;
--> ["id", "int", null]
ALTER VIEW lake.db.w SET TBLPROPERTIES ('a' = 'b');
SHOW TBLPROPERTIES lake.db.w ('a');
--> ["a", "b"]
ALTER VIEW lake.db.w UNSET TBLPROPERTIES ('a');
ALTER VIEW lake.db.w AS SELECT 1 AS one;
SELECT * FROM lake.db.w;
--> [1]
DROP VIEW lake.db.w;
SHOW VIEWS IN lake.db;
--> none
