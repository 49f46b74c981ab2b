import { redacted } from '../../supervise/index.ts';

/** Takes secrets out of a text. */
export type Redactor = (text: string) => string;

/** A value shorter than this is found in ordinary words, and taken out it would say what it is. */
const shortestSecret = 4;
/** The same for a part of one. */
const shortestPart = 10;

/** What looks like a secret, whosever it is. The first group, where there is one, stays. */
const patterns: readonly RegExp[] = [
  // Names and passwords in addresses.
  /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+:[^\s/@]*(?=@)/gi,
  // Tokens of GitHub, by their prefixes.
  /\b(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{20,})/g,
  /(\bauthorization["']?\s*[:=]\s*["']?(?:basic|bearer|token)\s+)[^\s"']+/gi,
  /(\b[A-Z0-9_]*(?:TOKEN|SECRET|API_KEY|PASSWORD)=)[^\s'"]+/g,
];

/**
 * A function that replaces every one of `secrets` in a text, also as they look in base64 (at any place of what was encoded),
 * in a URL, in JSON and in a composition, and each line of one that has several; and besides whatever looks like a
 * secret. Pass whole lines: half a secret is not recognised.
 */
export function redactorFor(secrets: readonly string[]): Redactor {
  const spellings = new Set(secrets.flatMap(spellingsOf));
  // The longest first, so that nothing is left of a secret that contains another one.
  const longestFirst = [...spellings].sort((a, b) => b.length - a.length);
  const known = longestFirst.length === 0 ? null : new RegExp(longestFirst.map(escaped).join('|'), 'g');
  return (text) => {
    const withoutKnown = known === null ? text : text.replace(known, redacted);
    return patterns.reduce((rest, pattern) => rest.replace(pattern, hide), withoutKnown);
  };
}

/** The length of the longest spelling of any of them: what may have to be held back of a line that goes on. */
export const longestSpelling = (secrets: readonly string[]): number =>
  secrets.flatMap(spellingsOf).reduce((longest, { length }) => Math.max(longest, length), 0);

function spellingsOf(secret: string): string[] {
  const whole = secret.trim();
  if (whole.length < shortestSecret) return [];
  const lines = whole.split(/\r?\n/).map((line) => line.trim());
  const parts = lines.length === 1 ? whole.split('$') : lines;
  return [whole, ...parts.filter((part) => part.length >= shortestPart)].flatMap(encodingsOf);
}

function encodingsOf(text: string): string[] {
  const inUrl = encodeURIComponent(text.toWellFormed());
  return [
    text,
    inUrl,
    inUrl.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    inUrl.replaceAll('%20', '+'),
    JSON.stringify(text).slice(1, -1),
    text.replaceAll('$', '$$$$'),
    ...base64Of(text),
  ];
}

/**
 * How a text looks in base64 wherever it stands in what was encoded: three bytes become four characters, so there are three
 * ways, each without the characters at its ends that depend on the neighbours.
 */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const isPartial = (before + bytes.length) % 3 !== 0;
    const own = encoded.slice(Math.ceil((before * 8) / 6), isPartial ? -1 : undefined);
    return own.length < shortestPart ? [] : [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

const hide = (_found: string, kept: unknown): string => `${typeof kept === 'string' ? kept : ''}${redacted}`;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
