import type { ActorRecord } from '../protocol/index.ts';

export type Projection = ActorRecord['projection'];
export type PlainFact = Projection[string];

/** Longest text of a projection or an error, in characters. */
const textLimit = 1024;

/** Text up to here is searched for credentials: the rest is cut off. */
const scanLimit = 4 * textLimit;

const shortened = (text: string): string => (text.length > textLimit ? `${text.slice(0, textLimit)}…` : text);

/** Undefined: not plain. An object in a projection could carry anything. */
function plain(value: unknown): PlainFact | undefined {
  if (typeof value === 'string') return value.length > textLimit ? shortened(value) : value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : value;
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value;
  return undefined;
}

/** The visible facts of an actor: names, shared by actors that have the same, and values, written over by the next. */
export class Facts {
  names: readonly string[] = [];
  readonly values: PlainFact[] = [];

  /** Lets through plain values only. */
  read(projection: Projection): void {
    let names = this.names;
    let fresh: string[] | undefined;
    let count = 0;
    for (const name in projection) {
      const value = plain(projection[name]);
      if (value === undefined) continue;
      if (fresh === undefined && names[count] !== name) fresh = names.slice(0, count);
      fresh?.push(name);
      this.values[count] = value;
      count += 1;
    }
    names = fresh ?? names;
    this.names = names.length === count ? names : names.slice(0, count);
  }

  clear(): void {
    this.names = [];
  }
}

/** Returns the message of a thrown value with credentials removed. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : typeof error === 'string' ? error : 'unknown error';
  return shortened(withoutCredentials(text) ?? '');
}

/** Patterns of credentials in error texts, and their replacements. Prefixes are bounded, and so is the time of a match. */
const credentials: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // `?token=…`, `OPENAI_API_KEY=…`
  [/\b((?:[\w-]{0,40}[_-])?(?:token|key|apikey|secret|password))(\s*=\s*["']?)[^\s&"',}]+/gi, '$1$2…'],
  // `"apiKey":"…"`, `password: …`
  [/\b((?:access|auth)?_?token|api[_-]?key|secret|password)(["']?\s*:\s*["']?)[^\s&"',}]+/gi, '$1$2…'],
  [/\b(authorization["']?\s*[=:]\s*["']?(?:Bearer|Basic)?)\s*[^\s"',]+/gi, '$1 …'],
  [/\b(Bearer)\s+[^\s"',]+/gi, '$1 …'],
  // `https://user:password@host`
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]+@/gi, '$1…@'],
  // Keys with a known prefix.
  [/\b(?:sk|pk|rk|ghp|gho|ghs|xox[abp])[-_][\w-]{8,}/g, '…'],
];

/** Error texts may quote a URL, a header or a key: the credentials in them are cut out. */
export function withoutCredentials(text: string | null): string | null {
  if (text === null) return null;
  return credentials.reduce(
    (rest, [pattern, replacement]) => rest.replace(pattern, replacement),
    text.length > scanLimit ? text.slice(0, scanLimit) : text,
  );
}
