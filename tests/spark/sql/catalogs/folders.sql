-- What folders cannot have.
CREATE TABLE lake.db.t (id INT) USING iceberg;
ALTER TABLE lake.db.t RENAME TO lake.db.u;
--! (?i)rename
CREATE VIEW lake.db.v AS SELECT 1 AS one;
--! keeps no views: only a metastore does
CREATE OR REPLACE VIEW lake.db.v AS SELECT 1 AS one;
--! keeps no views: only a metastore does
SHOW TABLES IN lake.db;
--> ["db", "t", false]
SHOW TABLES IN lake.db LIKE 'x*';
--> none
SHOW VIEWS IN lake.db;
--> none
DROP TABLE lake.db.t;
--! cannot be dropped without its files
DROP TABLE lake.db.t PURGE;
