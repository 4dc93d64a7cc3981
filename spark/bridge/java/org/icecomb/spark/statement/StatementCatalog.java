package org.icecomb.spark.statement;

import org.apache.spark.sql.connector.catalog.TableCatalog;

/** A catalog whose {@code alterTable} takes a {@link StatementChange}. */
public interface StatementCatalog extends TableCatalog {}
