"""All parsers of what others wrote or answered, by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile import (
    bridge_messages,
    entry_texts,
    journals,
    other_files,
    replies,
    settings_files,
    store_answers,
    table_files,
)
from tests.hostile.parser import Parser, Sound

PARSERS: dict[str, Callable[[Sound], Parser]] = {
    one.__name__: one
    for one in (
        *(
            table_files.metadata,
            table_files.packed_metadata,
            table_files.name_mapping,
            table_files.view,
            table_files.manifest_list,
            table_files.manifest,
            table_files.relocated_manifest,
            table_files.rows,
            table_files.orc_rows,
            table_files.parquet_rows,
            table_files.copied_pages,
            table_files.paimon_manifest,
            table_files.puffin,
            table_files.vector,
            table_files.delete_files,
            table_files.own_table,
            table_files.variant,
            table_files.variant_text,
            table_files.orc_tail,
            table_files.parquet_footer,
        ),
        *(
            other_files.paimon_schema,
            other_files.paimon_snapshot,
            other_files.paimon_partition,
            other_files.single_value,
            other_files.view_file,
            other_files.partition_statistics,
            other_files.sketches,
            other_files.statistics_file,
            other_files.stated_statistics,
            other_files.version_hint,
            other_files.migrated_footer,
        ),
        *(
            journals.journal,
            journals.journal_steps,
            journals.journal_pages,
            journals.taken_pages,
            journals.journal_digests,
            journals.kept_statuses,
        ),
        *(
            entry_texts.hive_type,
            entry_texts.paimon_type,
            entry_texts.spark_text,
            entry_texts.avro_text,
            entry_texts.trino_view,
            entry_texts.former_folders,
            entry_texts.stream_offset,
            entry_texts.header_schema,
        ),
        *(
            settings_files.hive_site,
            settings_files.token_files,
            settings_files.token_text,
            settings_files.catalog_file,
            settings_files.announcement,
        ),
        *(
            replies.thrift_reply,
            replies.names_replies,
            replies.lock_replies,
            replies.partition_replies,
            replies.refusals,
            replies.unknown_calls,
            replies.sasl_login,
        ),
        *(
            store_answers.google_answers,
            store_answers.azure_answers,
            store_answers.s3_answers,
            store_answers.web_hdfs,
        ),
        bridge_messages.bridge_messages,
    )
}
