-- INSERT in all its forms.
CREATE TABLE lake.db.t (id INT, what STRING, part INT) USING iceberg PARTITIONED BY (part);
INSERT INTO lake.db.t (part, id, what) VALUES (1, 10, NULL), (2, 20, NULL);
INSERT INTO lake.db.t BY NAME SELECT 'x' AS what, 3 AS part, 30 AS id;
INSERT INTO lake.db.t PARTITION (part = 1) SELECT 11, 'y';
SELECT * FROM lake.db.t ORDER BY id;
--> [10, null, 1]
--> [11, "y", 1]
--> [20, null, 2]
--> [30, "x", 3]
INSERT OVERWRITE lake.db.t PARTITION (part = 1) SELECT 12, 'z';
SELECT id FROM lake.db.t ORDER BY id;
--> [12]
--> [20]
--> [30]
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE lake.db.t VALUES (21, 'dynamic', 2), (40, 'new', 4);
RESET spark.sql.sources.partitionOverwriteMode;
SELECT id, part FROM lake.db.t ORDER BY id;
--> [12, 1]
--> [21, 2]
--> [30, 3]
--> [40, 4]
INSERT OVERWRITE lake.db.t SELECT 50, 'all', 5;
SELECT * FROM lake.db.t;
--> [50, "all", 5]
INSERT INTO lake.db.t VALUES (1);
--! INSERT_COLUMN_ARITY_MISMATCH
-- a table that is read while it is overwritten
INSERT INTO lake.db.t VALUES (60, 'more', 5);
INSERT OVERWRITE lake.db.t SELECT id + 1, what, part FROM lake.db.t WHERE id > 50;
SELECT * FROM lake.db.t;
--> [61, "more", 5]
DROP TABLE lake.db.t;
