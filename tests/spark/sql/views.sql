-- Views: made, read, shown, changed and dropped.
CREATE TABLE lake.db.t (id INT, k STRING) USING iceberg;
INSERT INTO lake.db.t VALUES (1, 'a'), (2, 'b');
CREATE VIEW lake.db.v (n COMMENT 'the number', kind COMMENT 'upper') COMMENT 'all' TBLPROPERTIES ('a' = 'b') AS SELECT id, upper(k) FROM lake.db.t;
SELECT * FROM lake.db.v ORDER BY n;
--> [1, "A"]
--> [2, "B"]
SELECT v.kind FROM lake.db.v WHERE n > 1;
--> ["B"]
DESCRIBE lake.db.v;
--> ["n", "int", "the number"]
--> ["kind", "string", "upper"]
SHOW VIEWS IN lake.db LIKE 'v';
--> ["db", "v", false]
SHOW TBLPROPERTIES lake.db.v ('a');
--> ["a", "b"]
CREATE VIEW IF NOT EXISTS lake.db.v AS SELECT 1 AS one;
CREATE VIEW lake.db.above AS WITH x AS (SELECT n * 10 AS ten FROM lake.db.v) SELECT * FROM x;
SELECT * FROM lake.db.above WHERE ten IN (SELECT n * 10 FROM lake.db.v WHERE kind = 'B');
--> [20]
INSERT INTO lake.db.t VALUES (3, 'c');
SELECT a.ten, v.kind FROM lake.db.above a JOIN lake.db.v v ON a.ten = v.n * 10 ORDER BY 1;
--> [10, "A"]
--> [20, "B"]
--> [30, "C"]
ALTER VIEW lake.db.v SET TBLPROPERTIES ('a' = 'c');
SHOW TBLPROPERTIES lake.db.v ('a');
--> ["a", "c"]
ALTER VIEW lake.db.v UNSET TBLPROPERTIES ('a');
CREATE OR REPLACE VIEW lake.db.v AS SELECT id AS n, 'x' AS kind FROM lake.db.t WHERE id < 3;
SELECT * FROM lake.db.above ORDER BY 1;
--> [10]
--> [20]
USE lake.db;
CREATE VIEW here AS SELECT max(id) AS top FROM t;
SELECT * FROM here;
--> [3]
USE spark_catalog.default;
SELECT * FROM lake.db.here;
--> [3]
ALTER VIEW lake.db.here RENAME TO lake.db.there;
SELECT * FROM lake.db.there;
--> [3]

CREATE TEMPORARY VIEW sql_views_mine AS SELECT 1 AS one;
CREATE VIEW lake.db.wrong AS SELECT * FROM sql_views_mine;
--! INVALID_TEMP_OBJ_REFERENCE|temporary
DROP VIEW sql_views_mine;
CREATE VIEW lake.db.wrong (a, b) AS SELECT 1 AS one;
--! NOT_ENOUGH_DATA_COLUMNS
CREATE VIEW lake.db.wrong (a) AS SELECT 1 AS one, 2 AS two;
--! TOO_MANY_DATA_COLUMNS
CREATE VIEW lake.db.wrong AS SELECT gone FROM lake.db.t;
--! gone
CREATE OR REPLACE VIEW lake.db.v AS SELECT ten AS n FROM lake.db.above;
--! (?i)recursive
CREATE VIEW lake.db.v AS SELECT 1 AS one;
--! (?i)already.exists
CREATE VIEW lake.db.t AS SELECT 1 AS one;
--! (?i)already.exists
CREATE TABLE lake.db.v (id INT) USING iceberg;
--! (?i)already.exists
DROP VIEW lake.db.nothing;
--! (?i)not_found|cannot be found
DROP VIEW IF EXISTS lake.db.nothing;
SELECT * FROM lake.db.wrong;
--! TABLE_OR_VIEW_NOT_FOUND
SELECT * FROM lake.db.above ORDER BY 1;
--> [10]
--> [20]
DROP VIEW lake.db.above;
DROP VIEW lake.db.there;
DROP VIEW lake.db.v;
DROP TABLE lake.db.t;
