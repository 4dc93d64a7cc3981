-- Rows that Iceberg Java deleted by their places: one of five in files that are read in parts, and a range.
SELECT count(*), count(DISTINCT id), sum(id), min(id), max(id) FROM lake.db.by_place;
--> [1438, 1438, 1437102, 1, 1998]
SELECT id, s FROM lake.db.by_place WHERE id BETWEEN 898 AND 1105 ORDER BY id;
--> [898, "s898"]
--> [1101, "new"]
--> [1102, "s1102"]
--> [1103, "s1103"]
--> [1104, "s1104"]
SELECT count(*), sum(_pos) FROM lake.db.by_place WHERE s = 'new';
--> [18, 153]
SELECT count(*) FROM lake.db.by_place WHERE id % 5 = 0;
--> [0]
SELECT DISTINCT content, lower(file_format) FROM lake.db.by_place.delete_files;
--> [1, "any"]
-- Rows that are deleted by values; what was written later stays.
SELECT id, k, s, amount, day FROM lake.db.by_values ORDER BY id, k;
--> [0, 0, "s0", "0.00", "2000-01-01"]
--> [2, 0, "later", null, null]
--> [3, 1, null, "3.75", "1969-11-30"]
--> [7, 1, "s7", "8.75", "1968-10-26"]
--> [8, 0, "later", null, null]
SELECT count(*) FROM lake.db.by_values;
--> [5]
SELECT s, count(*) FROM lake.db.by_values WHERE k = 0 GROUP BY s ORDER BY s;
--> ["later", 2]
--> ["s0", 1]
SELECT id FROM lake.db.by_values WHERE amount > 1 OR day < DATE '1970-01-01' ORDER BY id;
--> [3]
--> [7]
SELECT a.id FROM lake.db.by_values a JOIN lake.db.by_place b ON a.id = b.id ORDER BY a.id;
--> [2]
--> [3]
--> [7]
--> [8]
SELECT content, lower(file_format), sum(record_count) FROM lake.db.by_values.delete_files GROUP BY 1, 2;
--> [2, "any", 7]
SELECT count(*) FROM lake.db.by_values VERSION AS OF 'nothing';
--! (?i)nothing
