-- DELETE, UPDATE and MERGE in every shape, on a partitioned table.
CREATE TABLE lake.db.orders (id BIGINT, country STRING, price INT, place STRUCT<city: STRING, zip: INT>) USING iceberg
  PARTITIONED BY (country);
INSERT INTO lake.db.orders SELECT id, element_at(array('de', 'fr', 'it'), CAST(id % 3 + 1 AS INT)), CAST(id * 10 AS INT),
  named_struct('city', 'c' || id, 'zip', CAST(id AS INT)) FROM range(12);
DELETE FROM lake.db.orders WHERE country = 'fr' AND price >= 70;
SELECT country, count(*), sum(price) FROM lake.db.orders GROUP BY country ORDER BY country;
--> ["de", 4, 180]
--> ["fr", 2, 50]
--> ["it", 4, 260]
DELETE FROM lake.db.orders WHERE id IN (SELECT max(id) FROM lake.db.orders);
DELETE FROM lake.db.orders WHERE id % 2 = 1 AND country = 'it';
SELECT id FROM lake.db.orders WHERE country = 'it' ORDER BY id;
--> [2]
--> [8]
UPDATE lake.db.orders SET price = price + 1, place.zip = -1 WHERE country = 'it' OR id = 0;
SELECT id, price, place.city, place.zip FROM lake.db.orders WHERE place.zip < 1 ORDER BY id;
--> [0, 1, "c0", -1]
--> [2, 21, "c2", -1]
--> [8, 81, "c8", -1]
-- a row may move to another partition
UPDATE lake.db.orders SET country = 'ch' WHERE id = 9;
SELECT country, count(*) FROM lake.db.orders GROUP BY country ORDER BY country;
--> ["ch", 1]
--> ["de", 3]
--> ["fr", 2]
--> ["it", 2]
MERGE INTO lake.db.orders t
  USING (SELECT * FROM VALUES (0L, 'de', 1000), (1L, 'fr', 5), (77L, 'at', 7), (78L, 'at', -7) AS s(id, country, price)) s
  ON t.id = s.id
  WHEN MATCHED AND s.price > 100 THEN DELETE
  WHEN MATCHED THEN UPDATE SET t.price = s.price
  WHEN NOT MATCHED AND s.price > 0 THEN INSERT (id, country, price) VALUES (s.id, s.country, s.price);
SELECT id, country, price, place.city FROM lake.db.orders ORDER BY id;
--> [1, "fr", 5, "c1"]
--> [2, "it", 21, "c2"]
--> [3, "de", 30, "c3"]
--> [4, "fr", 40, "c4"]
--> [6, "de", 60, "c6"]
--> [8, "it", 81, "c8"]
--> [9, "ch", 90, "c9"]
--> [77, "at", 7, null]
MERGE INTO lake.db.orders t USING (SELECT 2L AS id) s ON t.id = s.id
  WHEN NOT MATCHED BY SOURCE AND t.country = 'de' THEN DELETE
  WHEN NOT MATCHED BY SOURCE THEN UPDATE SET price = 0;
SELECT id, price FROM lake.db.orders ORDER BY id;
--> [1, 0]
--> [2, 21]
--> [4, 0]
--> [8, 0]
--> [9, 0]
--> [77, 0]
-- two source rows for one of the table
MERGE INTO lake.db.orders t USING (SELECT * FROM VALUES (2L, 1), (2L, 2) AS s(id, price)) s ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET price = s.price;
--! MERGE_CARDINALITY_VIOLATION
SELECT price FROM lake.db.orders WHERE id = 2;
--> [21]
TRUNCATE TABLE lake.db.orders;
SELECT count(*) FROM lake.db.orders;
--> [0]
DROP TABLE lake.db.orders;

-- nulls are not equal to anything, and NOT of unknown is unknown
CREATE TABLE lake.db.nulls (id INT, x INT) USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');
INSERT INTO lake.db.nulls VALUES (1, NULL), (2, 5), (3, 7);
DELETE FROM lake.db.nulls WHERE x <> 5;
SELECT id FROM lake.db.nulls ORDER BY id;
--> [1]
--> [2]
DELETE FROM lake.db.nulls WHERE NOT (x <=> NULL);
SELECT id FROM lake.db.nulls;
--> [1]
DELETE FROM lake.db.nulls WHERE x NOT IN (1, 2);
SELECT id FROM lake.db.nulls;
--> [1]
DROP TABLE lake.db.nulls;
