-- Namespaces are made, described, listed and dropped.
CREATE NAMESPACE lake.db_more COMMENT 'more' WITH DBPROPERTIES ('owned-by' = 'nobody');
CREATE NAMESPACE lake.db_more;
--! (?i)already exists
CREATE NAMESPACE IF NOT EXISTS lake.db_more;
SHOW NAMESPACES IN lake LIKE 'db_more';
--> ["db_more"]
ALTER NAMESPACE lake.db_more SET DBPROPERTIES ('owned-by' = 'somebody');
CREATE TABLE lake.db_more.t (id INT) USING iceberg;
SHOW TABLES IN lake.db_more;
--> ["db_more", "t", false]
DROP NAMESPACE lake.db_more;
--! (?i)not.empty
DROP TABLE lake.db_more.t;
DROP TABLE lake.db_more.t;
--! TABLE_OR_VIEW_NOT_FOUND
DROP TABLE IF EXISTS lake.db_more.t;
DROP NAMESPACE lake.db_more;
SHOW NAMESPACES IN lake LIKE 'db_more';
--> none
CREATE TABLE lake.db_more.t (id INT) USING iceberg;
--! SCHEMA_NOT_FOUND|NoSuchNamespace|does not exist
