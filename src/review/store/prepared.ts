import type { Compilable, CompiledQuery, QueryResult } from 'kysely';
import type { Raw } from './columns.ts';
import type { Database, Rows } from './database.ts';

/** Placeholder in a query for a value that each execution provides. */
class Slot<V> {
  readonly name: keyof V;

  constructor(name: keyof V) {
    this.name = name;
  }
}

/** Returns a slot for any name. The query builder treats slots as values: it only adds them to the parameters. */
const slotsFor = <V extends object>(): V =>
  new Proxy<V>({} as V, { get: (_, name) => new Slot<V>(name as keyof V) as unknown as V[keyof V] });

/**
 * Builds and compiles a query once per database. Used for queries of every delivery, where building costs several times as much as
 * executing.
 * @param build - receives slots instead of values; it may only pass them to the query builder
 * @returns a function that runs the query in the transaction of `rows`
 */
export function prepared<V extends Readonly<Record<keyof V, Raw>>, R>(
  build: (database: Database, rows: Rows, slots: V) => Compilable<R>,
): (database: Database, rows: Rows, values: V) => Promise<QueryResult<R>> {
  const compiled = new WeakMap<Database, CompiledQuery<R>>();
  const of = (database: Database, rows: Rows): CompiledQuery<R> => {
    const made = build(database, rows, slotsFor<V>()).compile();
    compiled.set(database, made);
    return made;
  };
  return (database, rows, values) => {
    const query = compiled.get(database) ?? of(database, rows);
    const parameters = query.parameters.map((each) => (each instanceof Slot ? values[each.name as keyof V] : each));
    return rows.executeQuery<R>({ ...query, parameters });
  };
}
