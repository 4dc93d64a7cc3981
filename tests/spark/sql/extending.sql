-- Statements of the session extension: partition fields, write order, branches and tags; metadata tables and states by name.
CREATE TABLE lake.db.t (id BIGINT NOT NULL, at TIMESTAMP, what STRING) USING iceberg;
INSERT INTO lake.db.t VALUES (1, TIMESTAMP '2026-01-01 10:00:00', 'a'), (2, TIMESTAMP '2026-02-01 10:00:00', 'b');
ALTER TABLE lake.db.t ADD PARTITION FIELD months(at) AS month;
ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(4, id);
ALTER TABLE lake.db.t DROP PARTITION FIELD bucket(4, id);
ALTER TABLE lake.db.t WRITE ORDERED BY what DESC NULLS LAST, id;
ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id;
INSERT INTO lake.db.t VALUES (3, TIMESTAMP '2026-02-03 10:00:00', 'c'), (4, NULL, 'd');
SELECT id FROM lake.db.t WHERE at >= TIMESTAMP '2026-02-01 00:00:00' ORDER BY id;
--> [2]
--> [3]
SELECT spec_id, sum(record_count) FROM lake.db.t.files GROUP BY spec_id ORDER BY spec_id;
--> [0, 2]
--> [1, 2]
ALTER TABLE lake.db.t REPLACE PARTITION FIELD month WITH days(at);
ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS id;
ALTER TABLE lake.db.t WRITE UNORDERED;

ALTER TABLE lake.db.t CREATE TAG before_more RETAIN 7 DAYS;
ALTER TABLE lake.db.t CREATE BRANCH audit;
INSERT INTO lake.db.t.branch_audit VALUES (5, NULL, 'on the branch');
INSERT INTO lake.db.t VALUES (6, NULL, 'on main');
SELECT id FROM lake.db.t VERSION AS OF 'audit' WHERE at IS NULL ORDER BY id;
--> [4]
--> [5]
SELECT id FROM lake.db.t.branch_audit WHERE id > 4;
--> [5]
SELECT max(id) FROM lake.db.t.tag_before_more;
--> [4]
SELECT max(id) FROM lake.db.t;
--> [6]
SELECT name, type, max_reference_age_in_ms FROM lake.db.t.refs ORDER BY name;
--> ["audit", "BRANCH", null]
--> ["before_more", "TAG", 604800000]
--> ["main", "BRANCH", null]
SELECT operation, count(*) FROM lake.db.t.snapshots GROUP BY operation;
--> ["append", 4]
SELECT count(*) FROM lake.db.t.history;
--> [3]
ALTER TABLE lake.db.t DROP TAG before_more;
ALTER TABLE lake.db.t DROP BRANCH IF EXISTS audit;
ALTER TABLE lake.db.t DROP BRANCH audit;
--! audit
SELECT * FROM lake.db.t VERSION AS OF 'nowhere';
--! nowhere
SELECT count(*) FROM lake.db.t.refs;
--> [1]
DROP TABLE lake.db.t;
