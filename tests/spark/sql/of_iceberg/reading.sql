-- A table of format version 1 that Iceberg Java made and changed: columns were widened, renamed, dropped, added again, and the partitioning replaced.
SELECT id, i, f, m, day, name, st FROM lake.db.evolved ORDER BY id;
--> [0, -5, 0.0, "0.00", "1969-12-30", "a0", [0, "y", null]]
--> [1, null, 0.5, "1.25", null, "b1", [1, null, null]]
--> [2, -3, null, "2.50", "1970-01-01", null, null]
--> [3, -2, 1.5, null, "1970-01-02", "a3", [3, "y", null]]
--> [10, 3000000000, 0.1, "1234567890.12", "2026-11-22", "c", [5, null, 6]]
SELECT id, tz, ts, bi, li, ma FROM lake.db.evolved ORDER BY id;
--> [0, "1969-12-31 23:59:58.999999", "0001-01-01 00:00:00", null, [1, null], {"k": "1582-10-04"}]
--> [1, "1970-01-01 00:00:00.999999", null, null, [1, null], {"k": "1582-10-05"}]
--> [2, null, "0001-01-03 00:00:00", null, null, null]
--> [3, "1970-01-01 00:00:04.999999", "0001-01-04 00:00:00", null, [1, null], {"k": "1582-10-17"}]
--> [10, null, null, "text", [], {}]
SELECT id, st.n, st.z FROM lake.db.evolved WHERE st.n > 0 OR st.z = 6 ORDER BY id;
--> [1, 1, null]
--> [3, 3, null]
--> [10, 5, 6]
-- filters, each on values of before and after the change
SELECT id FROM lake.db.evolved WHERE i < 0 OR i = 3000000000 ORDER BY id;
--> [0]
--> [2]
--> [3]
--> [10]
SELECT id FROM lake.db.evolved WHERE m >= 1.25 ORDER BY id;
--> [1]
--> [2]
--> [10]
SELECT id FROM lake.db.evolved WHERE m IN (1.25, 1234567890.12) OR day < DATE '1970-01-01' ORDER BY id;
--> [0]
--> [1]
--> [10]
SELECT id FROM lake.db.evolved WHERE ts < TIMESTAMP_NTZ '1600-01-01 00:00:00' AND id > 0 OR tz < TIMESTAMP '1969-12-31 23:59:59' ORDER BY id;
--> [0]
--> [2]
--> [3]
SELECT id FROM lake.db.evolved WHERE name LIKE 'a%' AND bi IS NULL ORDER BY id;
--> [0]
--> [3]
SELECT id FROM lake.db.evolved WHERE NOT (day > DATE '1969-12-31') OR name IS NULL ORDER BY id;
--> [0]
--> [2]
SELECT count(*), count(i), min(id), max(day), sum(m) FROM lake.db.evolved;
--> [5, 4, 0, "2026-11-22", "1234567893.87"]
SELECT _spec_id, count(*) FROM lake.db.evolved GROUP BY 1 ORDER BY 1;
--> [0, 4]
--> [1, 1]
-- as it was before
SELECT s, st, bi FROM lake.db.evolved VERSION AS OF 'before' WHERE i = -5;
--> ["a0", [0, "y"], "6230"]
SELECT content, lower(file_format), sum(record_count) FROM lake.db.evolved.files GROUP BY 1, 2;
--> [0, "any", 5]
SELECT s FROM lake.db.evolved;
--! UNRESOLVED_COLUMN
