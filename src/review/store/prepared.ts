import type { Compilable, CompiledQuery, QueryResult } from 'kysely';
import type { Raw } from './columns.ts';
import type { Database, Rows } from './database.ts';

/** Stands in a query for a value that comes with each use of it. */
class Slot<V> {
  readonly name: keyof V;

  constructor(name: keyof V) {
    this.name = name;
  }
}

/** A slot for whatever is named. To the query builder they are values: it only puts them among the parameters. */
const slotsFor = <V extends object>(): V =>
  new Proxy<V>({} as V, { get: (_, name) => new Slot<V>(name as keyof V) as unknown as V[keyof V] });

/**
 * A query that is built and compiled once for each database. What happens with every delivery is said like this: the building
 * costs several times as much as the database does.
 * @param build - its values are slots: they may only be handed to the query builder
 * @returns runs it, in the transaction of `rows`
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
