/** How values of the protocol lie in columns of either database: texts, whole numbers and JSON in texts; nothing else. */
export type Raw = string | number | null;

export interface Column<T, R extends Raw = Raw> {
  encode(value: T): R;
  decode(raw: R): T;
}

/** PostgreSQL takes no NUL in a text, neither database half a character; and a title may hold anything. */
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
/** One of some words. */
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
/** JSON.stringify writes NUL as an escape. */
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
export const jsonOrNone = <T>() =>
  column<T | undefined, string | null>(
    (value) => (value === undefined ? null : JSON.stringify(value)),
    (raw) => (raw === null ? undefined : (JSON.parse(raw) as T)),
  );
/** ISO 8601 outside, milliseconds in the column. */
export const instant = column<string, number>(Date.parse, (raw) => new Date(Number(raw)).toISOString());
export const instantOrNone = column<string | undefined, number | null>(
  (value) => (value === undefined ? null : Date.parse(value)),
  (raw) => (raw === null ? undefined : new Date(Number(raw)).toISOString()),
);

type ColumnsOf<T> = { readonly [K in keyof Required<T>]: { encode(value: T[K]): Raw; decode(raw: never): T[K] } };
/** What a row is in the database. */
export type RowOf<C> = {
  [K in keyof C]: C[K] extends { readonly encode: (value: never) => infer R } ? R : never;
};

export interface Entity<T, C> {
  /** All of `value`. */
  encode(value: T): RowOf<C>;
  /** Only what `change` names; a key that is no column is a bug. */
  change(change: Partial<T>): Partial<RowOf<C>>;
  decode(row: RowOf<C>): T;
  /** For the types only. */
  readonly columns: C;
}

/** A shape of `types.ts` and the columns it lies in. */
export const entity =
  <T extends object>() =>
  <C extends ColumnsOf<T>>(columns: C): Entity<T, C> => {
    const all = columns as Readonly<Record<string, Column<unknown>>>;
    const encodeEach = (value: object) =>
      Object.fromEntries(
        Object.entries(value).map(([name, each]) => {
          const found = all[name];
          if (!found) throw new TypeError(`There is no column ${name}`);
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
