-- Files without ids, which Iceberg Java added to a table. A column was renamed since, and another given its name: to that one
-- Iceberg gave the name in its mapping, too.
SELECT id, new, s, st, p FROM lake.db.mapped ORDER BY id;
--> [1, null, "one", [10, null], 7]
--> [2, null, null, [null, null], 7]
--> [3, null, "three", null, 8]
--> [4, "four", "text", [40, 41], 9]
SELECT id FROM lake.db.mapped WHERE s IN ('one', 'text') ORDER BY id;
--> [1]
--> [4]
SELECT id FROM lake.db.mapped WHERE new IS NULL AND st.x = 10;
--> [1]
SELECT id FROM lake.db.mapped WHERE p = 7 AND s IS NULL;
--> [2]
SELECT id FROM lake.db.mapped WHERE day >= DATE '1970-01-01' OR day < DATE '1900-01-01' ORDER BY id;
--> [1]
--> [3]
SELECT count(*), count(new), count(s), max(id), count(DISTINCT p) FROM lake.db.mapped;
--> [4, 1, 3, 4, 3]
SELECT lower(file_format), sum(record_count) FROM lake.db.mapped.files GROUP BY 1;
--> ["any", 4]
SELECT s, st.gone FROM lake.db.mapped;
--! FIELD_NOT_FOUND|No such struct field
