package org.icecomb.spark;

import java.util.function.Function;
import scala.runtime.AbstractPartialFunction;

/** A change of the nodes of a tree; those that it returns as they are remain. */
public final class NodeChange<T> extends AbstractPartialFunction<T, T> {

  private final Function<T, T> change;

  public NodeChange(Function<T, T> change) {
    this.change = change;
  }

  @Override
  public boolean isDefinedAt(T node) {
    return true;
  }

  @Override
  public T apply(T node) {
    return change.apply(node);
  }
}
