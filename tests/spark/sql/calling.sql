-- CALL: by name and by position, expressions as arguments, and what is refused.
CREATE TABLE lake.db.t (id INT, k STRING) USING iceberg;
INSERT INTO lake.db.t VALUES (1, 'a');
ALTER TABLE lake.db.t CREATE TAG first;
INSERT INTO lake.db.t VALUES (2, 'b');
ALTER TABLE lake.db.t CREATE BRANCH audit;
INSERT INTO lake.db.t.branch_audit VALUES (3, 'c');
CALL lake.system.fast_forward('lake.db.t', 'main', 'audit');
SELECT count(*) FROM lake.db.t;
--> [3]
CALL lake.system.set_current_snapshot(ref => 'first', table => concat('lake.db', '.t'));
SELECT * FROM lake.db.t;
--> [1, "a"]
call lake . system /* one line
or two */ . `fast_forward`('lake.db.t', branch => 'audit',
  to => 'audit');
CALL lake.system.set_current_snapshot(table => 'lake.db.t', ref => 'audit');
CALL lake.system.rewrite_manifests(table => 'lake.db.t', use_caching => false);
--> [3, 1]
-- as many manifests as the target size asks for, here one an entry (testRewriteLargeManifests)
CREATE TABLE lake.db.large (id INT, dept STRING) USING iceberg PARTITIONED BY (dept);
INSERT INTO lake.db.large VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
ALTER TABLE lake.db.large SET TBLPROPERTIES ('commit.manifest.target-size-bytes' '1');
CALL lake.system.rewrite_manifests(table => 'lake.db.large', use_caching => false);
--> [1, 4]
SELECT count(*) FROM lake.db.large.manifests;
--> [4]
DROP TABLE lake.db.large;
CALL lake.system.create_changelog_view(table => 'lake.db.t', changelog_view => 'sql_calling_changes');
--> ["sql_calling_changes"]
SELECT id, k, _change_type, _change_ordinal FROM sql_calling_changes ORDER BY id;
--> [1, "a", "INSERT", 0]
--> [2, "b", "INSERT", 1]
--> [3, "c", "INSERT", 2]
DROP VIEW sql_calling_changes;
CALL lake.system.expire_snapshots(table => 'lake.db.t', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1);
SELECT id FROM lake.db.t ORDER BY id;
--> [1]
--> [2]
--> [3]

CALL lake.system.rollback_to_snapshot('lake.db.t', 1);
--! 1
CALL lake.system.fast_forward('lake.db.t', 'main');
--! (?i)to
CALL lake.system.fast_forward(table => 'lake.db.t', branch => 'main', into => 'audit');
--! (?i)into
CALL lake.system.rewrite_manifests(table => 'lake.db.t', sort_by => array());
--! sort_by must not be empty
CALL lake.system.no_such_procedure('lake.db.t');
--! no_such_procedure
CALL lake.system.expire_snapshots(table => 'lake.db.t', older_than => array(1));
--! .
CALL lake.system.ancestors_of('lake.db.gone');
--! gone
CALL lake.system.ancestors_of('lake.db.t';
--! .
SELECT count(*) FROM lake.db.t;
--> [3]
DROP TABLE lake.db.t;
