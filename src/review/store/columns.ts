/** Types of column values in both databases: text, integers, and JSON as text. */
export type Raw = string | number | null;

export interface Column<T, R extends Raw = Raw> {
  encode(value: T): R;
  decode(raw: R): T;
}

/** PostgreSQL rejects NUL in text, and both databases reject lone surrogates; a title from a source can contain either. */
const clean = (value: string): string => value.replaceAll('\0', '\uFFFD').toWellFormed();

const column = <T, R extends Raw>(encode: (value: T) => R, decode: (raw: R) => T): Column<T, R> => ({ encode, decode });
const present = <T>(value: T | null): T | undefined => value ?? undefined;

export const text = column<string, string>(clean, (raw) => raw);
export const textOrNull = column<string | null, string | null>(
  (value) => (value === null ? null : clean(value)),
  (raw) => raw,
);
export const textOrNone = column<string | undefined, string | null>(
  (value) => (value === undefined ? null : clean(value)),
  present,
);
export const whole = column<number, number>((value) => value, Number);
export const wholeOrNull = column<number | null, number | null>(
  (value) => value,
  (raw) => (raw === null ? null : Number(raw)),
);
export const wholeOrNone = column<number | undefined, number | null>(
  (value) => value ?? null,
  (raw) => (raw === null ? undefined : Number(raw)),
);
export const flag = column<boolean, number>(
  (value) => (value ? 1 : 0),
  (raw) => Number(raw) === 1,
);
/** Column for a union of string literals. */
export const word = <T extends string>() =>
  column<T, string>(
    (value) => value,
    (raw) => raw as T,
  );
export const wordOrNone = <T extends string>() =>
  column<T | undefined, string | null>(
    (value) => value ?? null,
    (raw) => present(raw as T | null),
  );
/** Column for JSON text. JSON.stringify escapes NUL and lone surrogates. */
export const json = <T>() =>
  column<T, string>(
    (value) => JSON.stringify(value),
    (raw) => JSON.parse(raw) as T,
  );
export const jsonOrNull = <T>() =>
  column<T | null, string | null>(
    (value) => (value === null ? null : JSON.stringify(value)),
    (raw) => (raw === null ? null : (JSON.parse(raw) as T)),
  );
/** Column for JSON text that rows of earlier versions lack. */
export const jsonOr = <T>(missing: T) =>
  column<T, string | null>(
    (value) => JSON.stringify(value),
    (raw) => (raw === null ? missing : (JSON.parse(raw) as T)),
  );
export const jsonOrNone = <T>() =>
  column<T | undefined, string | null>(
    (value) => (value === undefined ? null : JSON.stringify(value)),
    (raw) => (raw === null ? undefined : (JSON.parse(raw) as T)),
  );
/** ISO 8601 in the value, milliseconds since the epoch in the column. */
export const instant = column<string, number>(Date.parse, (raw) => new Date(Number(raw)).toISOString());
export const instantOrNone = column<string | undefined, number | null>(
  (value) => (value === undefined ? null : Date.parse(value)),
  (raw) => (raw === null ? undefined : new Date(Number(raw)).toISOString()),
);

type ColumnsOf<T> = { readonly [K in keyof Required<T>]: { encode(value: T[K]): Raw; decode(raw: never): T[K] } };
/** Raw row of an entity with these columns. */
export type RowOf<C> = {
  [K in keyof C]: C[K] extends { readonly encode: (value: never) => infer R } ? R : never;
};

export interface Entity<T, C> {
  /** Encodes every column of `value`. */
  encode(value: T): RowOf<C>;
  /** Encodes the columns that `change` names. @throws TypeError for an unknown column */
  change(change: Partial<T>): Partial<RowOf<C>>;
  decode(row: RowOf<C>): T;
  /** Read by types only. */
  readonly columns: C;
}

/** Maps a shape of `types.ts` to its columns. */
export const entity =
  <T extends object>() =>
  <C extends ColumnsOf<T>>(columns: C): Entity<T, C> => {
    const all = columns as Readonly<Record<string, Column<unknown>>>;
    const encodeEach = (value: object) =>
      Object.fromEntries(
        Object.entries(value).map(([name, each]) => {
          const found = all[name];
          if (!found) throw new TypeError(`Unknown column: ${name}`);
          return [name, found.encode(each)];
        }),
      );
    return {
      columns,
      encode: (value) =>
        Object.fromEntries(
          Object.entries(all).map(([name, each]) => [name, each.encode((value as Record<string, unknown>)[name])]),
        ) as RowOf<C>,
      change: (change) => encodeEach(change) as Partial<RowOf<C>>,
      decode: (row) => {
        const value: Record<string, unknown> = {};
        for (const [name, each] of Object.entries(all)) {
          const decoded = each.decode((row as Record<string, Raw>)[name] ?? null);
          if (decoded !== undefined) value[name] = decoded;
        }
        return value as T;
      },
    };
  };
