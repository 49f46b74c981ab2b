/**
 * Partly known values: the page has the facts that the projection of an actor shows, never its context. Code of
 * a machine that reads anything else is stopped, and its result is unknown instead of wrong.
 */

/** Thrown by a read of a value that is not known. */
export class Unknown extends Error {
  readonly field: string;

  constructor(field: string) {
    super(`${field} is not known`);
    this.field = field;
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** An object with only these readable fields; any other read throws `Unknown`. */
export function partlyKnown(fields: Fields): Record<string, unknown> {
  const stop = (field: string | symbol): never => {
    throw new Unknown(String(field));
  };
  return new Proxy<Record<string, unknown>>(
    {},
    {
      get: (_, field) => (typeof field === 'string' && Object.hasOwn(fields, field) ? fields[field] : stop(field)),
      has: (_, field) => (typeof field === 'string' && Object.hasOwn(fields, field) ? true : stop(field)),
      ownKeys: () => stop('…'),
    },
  );
}

/** Result of code over partly known values, or the unknown field that it reads. */
export function attempt<T>(work: () => T): { readonly value: T } | { readonly unknown: string } {
  try {
    return { value: work() };
  } catch (error) {
    // Code that fails over half a context says nothing about the real one.
    return { unknown: error instanceof Unknown ? error.field : 'the event' };
  }
}

/** Stands for any value: it can be read, called and copied, but not be made a number or a text. */
function placeholder(): unknown {
  const any: unknown = new Proxy(() => {}, {
    get: (_, field) => {
      if (field === Symbol.toPrimitive) throw new Unknown('a value');
      return field === Symbol.iterator ? () => [][Symbol.iterator]() : any;
    },
    apply: () => any,
    construct: () => any as object,
    ownKeys: () => [],
    getOwnPropertyDescriptor: () => undefined,
  });
  return any;
}

/**
 * Fields that a function may change when its result cannot be worked out: those of its result over placeholders, and those that
 * its source names. Null: all of them may have changed.
 */
export function changedBy(
  assignment: (args: never, params: never) => unknown,
  names: readonly string[],
): readonly string[] | null {
  const any = placeholder();
  const result = attempt(() => assignment({ context: any, event: any } as never, any as never));
  if (!('value' in result) || typeof result.value !== 'object' || result.value === null) return null;
  const source = assignment.toString();
  return [...Object.keys(result.value), ...names.filter((name) => new RegExp(`\\b${name}\\b`).test(source))];
}
