-- A column is its id: rows written before show what they should.
CREATE TABLE lake.db.t (id INT NOT NULL, price DECIMAL(9, 2), place STRUCT<city: STRING>) USING iceberg;
INSERT INTO lake.db.t VALUES (1, 9.50, named_struct('city', 'Bonn'));
ALTER TABLE lake.db.t ADD COLUMNS (note STRING COMMENT 'free text' AFTER id);
ALTER TABLE lake.db.t ADD COLUMN place.zip INT;
INSERT INTO lake.db.t VALUES (2, 'n', 20.00, named_struct('city', 'Ulm', 'zip', 5));
SELECT id, note, price, place.city, place.zip FROM lake.db.t ORDER BY id;
--> [1, null, "9.50", "Bonn", null]
--> [2, "n", "20.00", "Ulm", 5]
ALTER TABLE lake.db.t RENAME COLUMN note TO remark;
ALTER TABLE lake.db.t ALTER COLUMN id TYPE BIGINT;
ALTER TABLE lake.db.t ALTER COLUMN price TYPE DECIMAL(20, 2);
ALTER TABLE lake.db.t ALTER COLUMN id DROP NOT NULL;
ALTER TABLE lake.db.t ALTER COLUMN remark FIRST;
INSERT INTO lake.db.t VALUES ('m', 3000000000, 123456789012.25, NULL);
SELECT remark, id, price FROM lake.db.t ORDER BY id;
--> [null, 1, "9.50"]
--> ["n", 2, "20.00"]
--> ["m", 3000000000, "123456789012.25"]
-- dropped and added again, it is another column
ALTER TABLE lake.db.t DROP COLUMN remark;
ALTER TABLE lake.db.t ADD COLUMN remark STRING;
SELECT count(*), count(remark) FROM lake.db.t;
--> [3, 0]
ALTER TABLE lake.db.t SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '7');
SHOW TBLPROPERTIES lake.db.t ('write.metadata.previous-versions-max');
--> ["write.metadata.previous-versions-max", "7"]
ALTER TABLE lake.db.t UNSET TBLPROPERTIES ('write.metadata.previous-versions-max');
ALTER TABLE lake.db.t ALTER COLUMN id TYPE INT;
--! id
ALTER TABLE lake.db.t ADD COLUMN price STRING;
--! price
ALTER TABLE lake.db.t RENAME TO lake.db.renamed;
SELECT id FROM lake.db.renamed WHERE price > 10 ORDER BY id;
--> [2]
--> [3000000000]
SELECT * FROM lake.db.t;
--! TABLE_OR_VIEW_NOT_FOUND
DROP TABLE lake.db.renamed;

-- widened at every depth, filtered, and with rows deleted
CREATE TABLE lake.db.wide (id INT, f FLOAT, d DECIMAL(9, 2), s STRUCT<i: INT, f: FLOAT>, l ARRAY<INT>, m MAP<INT, FLOAT>,
  deep ARRAY<STRUCT<d: DECIMAL(4, 1), keep: STRING>>, e DECIMAL(18, 3)) USING iceberg TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');
INSERT INTO lake.db.wide VALUES
  (1, CAST(0.5 AS FLOAT), 1.25, named_struct('i', 7, 'f', CAST(1.5 AS FLOAT)), array(1, NULL, -3), map(1, CAST(2.5 AS FLOAT)),
   array(named_struct('d', 12.5, 'keep', 'k'), NULL), 123456789012345.678),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, CAST(-4.0 AS FLOAT), -9999999.99, named_struct('i', NULL, 'f', NULL), array(), map(), array(), -0.001);
ALTER TABLE lake.db.wide ALTER COLUMN id TYPE BIGINT;
ALTER TABLE lake.db.wide ALTER COLUMN f TYPE DOUBLE;
ALTER TABLE lake.db.wide ALTER COLUMN d TYPE DECIMAL(30, 2);
ALTER TABLE lake.db.wide ALTER COLUMN s.i TYPE BIGINT;
ALTER TABLE lake.db.wide ALTER COLUMN s.f TYPE DOUBLE;
ALTER TABLE lake.db.wide ALTER COLUMN l.element TYPE BIGINT;
ALTER TABLE lake.db.wide ALTER COLUMN m.value TYPE DOUBLE;
ALTER TABLE lake.db.wide ALTER COLUMN deep.element.d TYPE DECIMAL(12, 1);
ALTER TABLE lake.db.wide ALTER COLUMN e TYPE DECIMAL(38, 3);
INSERT INTO lake.db.wide VALUES (5000000000, 1e300D, 1234567890123456789012345678.25, named_struct('i', 5000000000, 'f', 1e300D),
  array(5000000000), map(4, 1e300D), array(named_struct('d', 12345678901.5, 'keep', 'x')), 12345678901234567890123456789012345.678);
SELECT id, f, d, e, s.i, s.f, l, m[1], get(deep, 0).d, get(deep, 0).keep FROM lake.db.wide ORDER BY id;
--> [1, 0.5, "1.25", "123456789012345.678", 7, 1.5, [1, null, -3], 2.5, "12.5", "k"]
--> [2, null, null, null, null, null, null, null, null, null]
--> [3, -4.0, "-9999999.99", "-0.001", null, null, [], null, null, null]
--> [5000000000, 1e+300, "1234567890123456789012345678.25", "12345678901234567890123456789012345.678", 5000000000, 1e+300, [5000000000], null, "12345678901.5", "x"]
SELECT id FROM lake.db.wide WHERE d = 1.25 AND f < 1 AND s.i = 7;
--> [1]
DELETE FROM lake.db.wide WHERE id = 2;
SELECT id, d, s.f, l, get(deep, 0).d FROM lake.db.wide WHERE id < 4 ORDER BY id;
--> [1, "1.25", 1.5, [1, null, -3], "12.5"]
--> [3, "-9999999.99", null, [], null]
UPDATE lake.db.wide SET f = f * 2 WHERE id = 1;
SELECT id, f, d, m[1] FROM lake.db.wide ORDER BY id;
--> [1, 1.0, "1.25", 2.5]
--> [3, -4.0, "-9999999.99", null]
--> [5000000000, 1e+300, "1234567890123456789012345678.25", null]
DROP TABLE lake.db.wide;
