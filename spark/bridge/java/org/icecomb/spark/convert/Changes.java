package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.statement.StatementChange;

/** Conversion of ALTER TABLE's changes to JSON; the planner decides which of them are possible. */
public final class Changes {

  private Changes() {}

  public static ArrayNode toJson(TableChange... changes) {
    ArrayNode array = Json.array();
    for (TableChange change : changes) {
      array.add(one(change));
    }
    return array;
  }

  private static ObjectNode one(TableChange change) {
    if (change instanceof TableChange.SetProperty set) {
      return action("set_property").put("key", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty remove) {
      return action("remove_property").put("key", remove.property());
    }
    if (change instanceof TableChange.ColumnChange column) {
      ObjectNode json = column(column);
      json.set("path", Json.array(column.fieldNames()));
      return json;
    }
    if (change instanceof StatementChange statement) {
      return action("statement")
          .put("text", statement.text())
          .put("case_sensitive", statement.caseSensitive());
    }
    return unknown(change);
  }

  private static ObjectNode column(TableChange.ColumnChange change) {
    if (change instanceof TableChange.AddColumn add) {
      ObjectNode json = action("add_column");
      json.put("nullable", add.isNullable()).put("comment", add.comment());
      json.put("default", add.defaultValue() == null ? "" : add.defaultValue().getSql());
      json.set("type", Schemas.toJson(add.dataType()));
      json.set("position", position(add.position()));
      return json;
    }
    if (change instanceof TableChange.RenameColumn rename) {
      return action("rename_column").put("new_name", rename.newName());
    }
    if (change instanceof TableChange.UpdateColumnType update) {
      ObjectNode json = action("update_column_type");
      json.set("type", Schemas.toJson(update.newDataType()));
      return json;
    }
    if (change instanceof TableChange.UpdateColumnNullability update) {
      return action("update_column_nullability").put("nullable", update.nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment update) {
      return action("update_column_comment").put("comment", update.newComment());
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue update) {
      return action("update_column_default").put("default", update.newDefaultValue());
    }
    if (change instanceof TableChange.UpdateColumnPosition update) {
      ObjectNode json = action("update_column_position");
      json.set("position", position(update.position()));
      return json;
    }
    if (change instanceof TableChange.DeleteColumn delete) {
      return action("delete_column").put("if_exists", delete.ifExists());
    }
    return unknown(change);
  }

  private static JsonNode position(TableChange.ColumnPosition position) {
    if (position == null) {
      return NullNode.getInstance();
    }
    if (position instanceof TableChange.After after) {
      return Json.object().put("after", after.column());
    }
    return Json.object().put("first", true);
  }

  private static ObjectNode unknown(TableChange change) {
    return action("unknown").put("text", change.getClass().getSimpleName());
  }

  private static ObjectNode action(String name) {
    return Json.object().put("action", name);
  }
}
