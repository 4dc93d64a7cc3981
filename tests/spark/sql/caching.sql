-- What a session caches of a table, or of a view of it, is right after each of the session's changes.
CREATE TABLE lake.db.t (id INT, k STRING) USING iceberg;
INSERT INTO lake.db.t VALUES (1, 'a');
ALTER TABLE lake.db.t CREATE TAG first;
INSERT INTO lake.db.t VALUES (2, 'b');
ALTER TABLE lake.db.t CREATE BRANCH audit;
INSERT INTO lake.db.t.branch_audit VALUES (3, 'c');
CACHE TABLE lake.db.t;
CREATE TEMPORARY VIEW sql_caching_view AS SELECT id, k FROM lake.db.t WHERE id > 0;
CACHE TABLE sql_caching_view;
CACHE TABLE sql_caching_select AS SELECT max(id) AS most FROM lake.db.t;
CACHE TABLE sql_caching_files AS SELECT count(*) AS files FROM lake.db.t.files;
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [2, 2, 2]
CALL lake.system.fast_forward('lake.db.t', 'main', 'audit');
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [3, 3, 3]
CALL lake.system.set_current_snapshot(table => 'lake.db.t', ref => 'first');
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [1, 1, 1]
INSERT INTO lake.db.t VALUES (7, 'g');
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [2, 2, 7]
CALL lake.system.rewrite_manifests('lake.db.t');
ALTER TABLE lake.db.t ADD PARTITION FIELD k;
INSERT INTO lake.db.t VALUES (8, 'h');
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [3, 3, 8]
DELETE FROM lake.db.t WHERE id = 8;
UPDATE lake.db.t SET id = 6 WHERE id = 7;
SELECT (SELECT count(*) FROM lake.db.t), (SELECT count(*) FROM sql_caching_view), most FROM sql_caching_select;
--> [2, 2, 6]
UNCACHE TABLE sql_caching_files;
UNCACHE TABLE sql_caching_select;
UNCACHE TABLE sql_caching_view;
DROP VIEW sql_caching_view;
DROP VIEW sql_caching_select;
DROP VIEW sql_caching_files;
SELECT gone FROM lake.db.t;
--! gone
UNCACHE TABLE lake.db.t;
DROP TABLE lake.db.t;
