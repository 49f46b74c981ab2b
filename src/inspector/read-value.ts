import type { InspectedValue } from './options.ts';

/** Limits of one read. */
export interface ReadLimits {
  readonly values: number;
  readonly depth: number;
  readonly entries: number;
  readonly milliseconds: number;
  readonly now: () => number;
  /** The path of an object with more names is added to `slow`. */
  readonly names: number;
}

export type Mask = (inspected: InspectedValue) => unknown;

const masked = '(masked)';
const unreadable = '(unreadable)';
/** Maximum length of a text inside an object. */
const textChars = 200;
/** Maximum number of stored paths of objects with too many names, per machine. */
const mostSlow = 1_000;

/** Names whose values the default mask treats as secrets. */
const secretName = /pass(?:word|phrase|wd)|secret|token|api[-_]?key|private[-_]?key|authorization|cookie|credential/i;

/** Default mask: hides texts under names of secrets, also in lists and objects. */
export const maskByName: Mask = ({ path, value }) =>
  typeof value === 'string' && secretName.test(path) ? masked : value;

/**
 * Converts any value to text within limits. Runs no getter of the program and changes nothing. Reads only names and descriptors
 * of a proxy. Never throws.
 */
export class ValueReader {
  readonly #limits: ReadLimits;
  readonly #mask: Mask;
  /** Paths of objects with too many names. */
  readonly #slow: Set<string>;
  readonly #above = new Set<object>();
  #text = '';
  #chars = 0;
  #values: number;
  readonly #until: number;

  constructor(limits: ReadLimits, mask: Mask, slow: Set<string>) {
    this.#limits = limits;
    this.#mask = mask;
    this.#slow = slow;
    this.#values = limits.values;
    this.#until = limits.now() + limits.milliseconds;
  }

  /** Whether the time limit is exceeded, because code of the program is slow. */
  get isLate(): boolean {
    return this.#limits.now() > this.#until;
  }

  /** Names of an object's own properties; null if there are too many, or they are unreadable. */
  namesOf(value: object, path: string): string[] | null {
    if (this.#slow.has(path)) return null;
    try {
      const names = Object.keys(value);
      if (names.length > this.#limits.names && this.#slow.size < mostSlow) this.#slow.add(path);
      return names;
    } catch {
      return null;
    }
  }

  /** Reads a property through the mask. The result is boxed, so that it can be undefined. */
  property(value: object, key: string, path: string): { readonly value: unknown } | { readonly text: string } {
    this.#values -= 1;
    let own: unknown;
    try {
      const property = Object.getOwnPropertyDescriptor(value, key);
      if (property === undefined) return { text: unreadable };
      if (!('value' in property)) return { text: '(getter)' };
      own = property.value;
    } catch {
      return { text: unreadable };
    }
    try {
      return { value: this.#mask({ path, key, value: own }) };
    } catch {
      return { text: masked };
    }
  }

  /** Text of a value, with at most `chars` characters. */
  textOf(value: unknown, path: string, chars: number): string {
    this.#text = '';
    this.#chars = chars - 1;
    this.#above.clear();
    try {
      this.#write(value, path, 0);
    } catch {
      this.#put(unreadable);
    }
    return this.#chars < 0 ? `${this.#text.slice(0, chars - 1)}…` : this.#text;
  }

  #put(text: string): void {
    this.#text += text.length > this.#chars + 1 ? text.slice(0, Math.max(0, this.#chars + 1)) : text;
    this.#chars -= text.length;
  }

  #write(value: unknown, path: string, depth: number): void {
    if (typeof value === 'string')
      this.#put(JSON.stringify(cut(value, depth === 0 ? Math.max(0, this.#chars) : textChars)));
    else if (typeof value === 'bigint') this.#put(bigintText(value));
    else if (typeof value === 'function') this.#put(`ƒ ${nameOf(value)}`);
    else if (typeof value === 'symbol') this.#put(cut(String(value), textChars));
    else if (typeof value !== 'object' || value === null) this.#put(String(value));
    else if (this.#above.has(value)) this.#put('(circular)');
    else this.#object(value, path, depth);
  }

  #object(value: object, path: string, depth: number): void {
    const special = specialText(value);
    if (special !== undefined) {
      this.#put(special);
      return;
    }
    this.#above.add(value);
    if (Array.isArray(value)) this.#list(value, path, depth);
    else if (value instanceof Map || value instanceof Set) this.#collection(value, path, depth);
    else this.#record(value, path, depth);
    this.#above.delete(value);
  }

  /** Whether the entry at `index` exceeds a limit and is left out. */
  #isFull(depth: number, index = 0): boolean {
    const { depth: most, entries } = this.#limits;
    return depth >= most || index >= entries || this.#chars < 0 || this.#values <= 0 || this.isLate;
  }

  #list(list: readonly unknown[], path: string, depth: number): void {
    if (list.length > 0 && this.#isFull(depth)) {
      this.#put(`Array(${list.length})`);
      return;
    }
    this.#put('[');
    for (let index = 0; index < list.length; index += 1) {
      if (index > 0) this.#put(', ');
      if (this.#isFull(depth, index)) {
        this.#put(`… ${list.length - index} more]`);
        return;
      }
      this.#property(list, String(index), path, depth);
    }
    this.#put(']');
  }

  #collection(value: Map<unknown, unknown> | Set<unknown>, path: string, depth: number): void {
    const name = value instanceof Map ? 'Map' : 'Set';
    const size = sizeOf(value);
    if (size === 0 || this.#isFull(depth)) {
      this.#put(`${name}(${size})`);
      return;
    }
    this.#put(`${name}(${size}) {`);
    let index = 0;
    for (const entry of entriesOf(value)) {
      if (index > 0) this.#put(', ');
      if (this.#isFull(depth, index)) {
        this.#put('…}');
        return;
      }
      index += 1;
      this.#values -= 1;
      const [key, held] = value instanceof Map ? (entry as [unknown, unknown]) : [undefined, entry];
      const name = typeof key === 'string' || typeof key === 'number' ? String(key) : String(index - 1);
      if (value instanceof Map) {
        this.#write(key, path, depth + 1);
        this.#put(' → ');
      }
      this.#shown(() => this.#mask({ path: `${path}.${name}`, key: name, value: held }), `${path}.${name}`, depth);
    }
    this.#put('}');
  }

  #shown(read: () => unknown, path: string, depth: number): void {
    let value: unknown;
    try {
      value = read();
    } catch {
      this.#put(masked);
      return;
    }
    this.#write(value, path, depth + 1);
  }

  #record(value: object, path: string, depth: number): void {
    const name = classOf(value);
    if (this.#isFull(depth)) {
      this.#put(`${name || 'Object'} {…}`);
      return;
    }
    const names = this.namesOf(value, path);
    if (names === null) {
      this.#put(`${name || 'Object'} {… not listed}`);
      return;
    }
    this.#put(name === '' ? '{' : `${name} {`);
    for (const [index, key] of names.entries()) {
      if (index > 0) this.#put(', ');
      if (this.#isFull(depth, index)) {
        this.#put(`… ${names.length - index} more}`);
        return;
      }
      this.#put(`${cut(key, textChars)}: `);
      this.#property(value, key, path, depth);
    }
    this.#put('}');
  }

  #property(value: object, key: string, path: string, depth: number): void {
    const at = `${path}.${key}`;
    const read = this.property(value, key, at);
    if ('text' in read) this.#put(read.text);
    else this.#write(read.value, at, depth + 1);
  }
}

/** Size and entries by the built-in functions: a class of the program may have others. */
const sizeOf = (value: Map<unknown, unknown> | Set<unknown>): number =>
  Number(
    Object.getOwnPropertyDescriptor(value instanceof Map ? Map.prototype : Set.prototype, 'size')?.get?.call(value),
  );
const entriesOf = (value: Map<unknown, unknown> | Set<unknown>): Iterable<unknown> =>
  value instanceof Map ? Map.prototype.entries.call(value) : Set.prototype.values.call(value);

export const cut = (text: string, chars: number): string => (text.length > chars ? `${text.slice(0, chars)}…` : text);

/** Larger BigInts are not converted to digits, which would exceed the time limit of a snapshot. */
const bigintBits = 256;

const bigintText = (value: bigint): string =>
  BigInt.asIntN(bigintBits, value) === value ? `${value}n` : '(large bigint)';

/** Value of an own property that is not a getter. */
const plainProperty = (value: object, key: string): unknown => Object.getOwnPropertyDescriptor(value, key)?.value;

/** Text of an own property; empty for other values, whose conversion is code of the program. */
function plainText(value: object, key: string, chars: number): string {
  const text = plainProperty(value, key);
  return typeof text === 'string' ? cut(text, chars) : '';
}

const nameOf = (value: object): string => plainText(value, 'name', 60);

/** Name of an object's class; empty for a plain object. */
function classOf(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype || typeof prototype !== 'object') return '';
  const made = plainProperty(prototype, 'constructor');
  const name = typeof made === 'function' ? nameOf(made) : '';
  return name === 'Object' ? '' : name;
}

/** Text of an object whose value is not in its properties; undefined for other objects. */
function specialText(value: object): string | undefined {
  if (typeof Node === 'function' && value instanceof Node) return `<${value.nodeName.toLowerCase()}>`;
  if (value instanceof Date) {
    const at = Date.prototype.getTime.call(value);
    return Number.isNaN(at) ? 'Invalid Date' : new Date(at).toISOString();
  }
  if (value instanceof RegExp) return cut(RegExp.prototype.toString.call(value), textChars);
  if (value instanceof Error) return `${classOf(value) || 'Error'}: ${plainText(value, 'message', textChars)}`;
  if (ArrayBuffer.isView(value)) return `${classOf(value)}(${value.byteLength} bytes)`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer(${value.byteLength} bytes)`;
  if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) return classOf(value);
  const session = plainProperty(value, 'sessionId');
  if (typeof session === 'string' && typeof plainProperty(value, 'send') === 'function') {
    return `actor ${plainText(value, 'id', 60)}`;
  }
  return undefined;
}
