-- INSERT of other columns than the table's, where it takes them: what is new is added, what is wider widens a column.
CREATE TABLE lake.db.t (id INT, s STRING, p STRUCT<x: INT>) USING iceberg
TBLPROPERTIES ('write.spark.accept-any-schema' = 'true');
INSERT INTO lake.db.t SELECT 1 AS id, 'a' AS s, named_struct('x', 1) AS p;
-- by names, not by places; what may be null can be left out
INSERT INTO lake.db.t SELECT 2 AS id, named_struct('x', 2) AS p;
INSERT INTO lake.db.t SELECT 3 AS id, 'c' AS s, named_struct('x', 3) AS p, 'new' AS n;
--! column n|Field n
SELECT * FROM lake.db.t ORDER BY id;
--> [1, "a", [1]]
--> [2, null, [2]]
SET `spark.sql.iceberg.merge-schema` = true;
INSERT INTO lake.db.t SELECT 3000000000 AS id, 'c' AS s, named_struct('x', 3, 'y', array('z')) AS p, 'new' AS n;
RESET `spark.sql.iceberg.merge-schema`;
SELECT id, s, p.x, p.y, n FROM lake.db.t ORDER BY id;
--> [1, "a", 1, null, null]
--> [2, null, 2, null, null]
--> [3000000000, "c", 3, ["z"], "new"]
SELECT id FROM lake.db.t WHERE n IS NULL AND id < 2147483648 ORDER BY id;
--> [1]
--> [2]
-- Spark resolves no columns of such a table, and so changes none of its rows
UPDATE lake.db.t SET n = 'old' WHERE id = 2;
--! UPDATE TABLE
MERGE INTO lake.db.t t USING (SELECT 2L AS id, 'm' AS n UNION ALL SELECT 9L, 'i') s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n);
--! cannot be resolved
DELETE FROM lake.db.t WHERE id = 1;
SELECT id, s, p.x, n FROM lake.db.t ORDER BY id;
--> [2, null, 2, null]
--> [3000000000, "c", 3, "new"]
INSERT OVERWRITE lake.db.t SELECT 4L AS id, 'd' AS s;
SELECT id, s, n FROM lake.db.t;
--> [4, "d", null]
-- without the property they are changed again
ALTER TABLE lake.db.t UNSET TBLPROPERTIES ('write.spark.accept-any-schema');
UPDATE lake.db.t SET s = 'e', n = s;
MERGE INTO lake.db.t t USING (SELECT 4L AS id UNION ALL SELECT 9L) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.p = named_struct('x', 1, 'y', array()) WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 'i');
SELECT id, s, p.x, n FROM lake.db.t ORDER BY id;
--> [4, "e", 1, "d"]
--> [9, null, null, "i"]
DROP TABLE lake.db.t;
