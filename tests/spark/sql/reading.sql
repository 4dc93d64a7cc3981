-- Queries: filters, projections, aggregates, joins, metadata columns, functions.
CREATE TABLE lake.db.facts (id BIGINT, day DATE, country STRING, amount DECIMAL(10, 2), tags ARRAY<STRING>) USING iceberg
  PARTITIONED BY (country, months(day));
INSERT INTO lake.db.facts SELECT id, date_add(DATE '2025-12-30', CAST(id AS INT)), element_at(array('de', 'fr', NULL), CAST(id % 3 + 1 AS INT)),
  CAST(id * 1.25 AS DECIMAL(10, 2)), array('t' || id) FROM range(6);
INSERT INTO lake.db.facts VALUES (100, NULL, 'de', NULL, NULL);
SELECT country, count(*), sum(amount), min(day), max(day) FROM lake.db.facts GROUP BY country ORDER BY country;
--> [null, 2, "8.75", "2026-01-01", "2026-01-04"]
--> ["de", 3, "3.75", "2025-12-30", "2026-01-02"]
--> ["fr", 2, "6.25", "2025-12-31", "2026-01-03"]
SELECT id FROM lake.db.facts WHERE country NOT IN ('fr') ORDER BY id;
--> [0]
--> [3]
--> [100]
SELECT id FROM lake.db.facts WHERE country IS NULL OR day < DATE '2026-01-01' ORDER BY id;
--> [0]
--> [1]
--> [2]
--> [5]
SELECT id FROM lake.db.facts WHERE NOT (amount BETWEEN 1 AND 5) ORDER BY id;
--> [0]
--> [5]
SELECT count(*) FROM lake.db.facts WHERE tags[0] = 't4' AND id >= 4 AND id < 100;
--> [1]
SELECT a.id, b.id FROM lake.db.facts a JOIN lake.db.facts b ON a.country = b.country AND a.id < b.id WHERE a.country = 'fr';
--> [1, 4]
SELECT id FROM lake.db.facts ORDER BY id DESC LIMIT 2;
--> [100]
--> [5]
SELECT max(_pos), count(DISTINCT _file), max(_spec_id) FROM lake.db.facts WHERE country = 'fr';
--> [0, 2, 0]
SELECT count(*) FROM lake.db.facts TIMESTAMP AS OF current_timestamp();
--> [7]
SELECT * FROM lake.db.facts WHERE nowhere = 1;
--! UNRESOLVED_COLUMN
DROP TABLE lake.db.facts;

-- The transforms as functions: values of the specification's appendix B, and of Iceberg Java.
SELECT lake.system.bucket(16, 34), lake.system.bucket(16, CAST(34 AS BIGINT)), lake.system.bucket(16, 'iceberg'), lake.system.bucket(16, CAST(NULL AS INT));
--> [3, 3, 9, null]
SELECT lake.system.truncate(10, -1), lake.system.truncate(10, 11), lake.system.truncate(3, 'iceberg'), lake.system.truncate(50, CAST(10.65 AS DECIMAL(9, 2)));
--> [-10, 10, "ice", "10.50"]
SELECT lake.system.years(DATE '2017-11-16'), lake.system.months(DATE '2017-11-16'), lake.system.days(DATE '2017-11-16'), lake.system.hours(TIMESTAMP '2017-11-16 22:31:08');
--> [47, 574, "2017-11-16", 419686]
SELECT lake.system.years(DATE '1969-12-31'), lake.system.months(DATE '1969-12-31'), lake.system.hours(TIMESTAMP '1969-12-31 23:59:59');
--> [-1, -1, -1]
