import { control, invisible } from './hidden-text.ts';
import { leakIn } from './leaks.ts';
import { markdownParts } from './markdown.ts';

/** Reason why a text is not published. */
export interface Blocked {
  readonly code: 'draftContainsSecret';
  readonly message: string;
}
export interface ScannedText {
  /** Empty when the text is blocked. */
  readonly text: string;
  readonly blockedBy: Blocked | null;
  /** Descriptions of removed and neutralised parts. */
  readonly changes: readonly string[];
}

interface Rule {
  readonly what: string;
  readonly pattern: RegExp;
  readonly by: (...found: string[]) => string;
}

/** Behind a sign this character is invisible, and the sign loses its special meaning. */
const joiner = '\u200d';
const keepReferences =
  'amp|lt|gt|quot|apos|nbsp|ndash|mdash|hellip|larr|rarr|times|le|ge|ne|copy|bull|middot|euro|pound';

/**
 * Rules that neutralise prose under the name of an App, in the order of their application. Signs are taken apart rather than whole
 * constructs recognised: `![` without its mark is a link in every case, `<` that is spelled out begins no tag.
 */
const proseRules: readonly Rule[] = [
  { what: 'HTML comments', pattern: /<!--(?:(?!<!--)[\s\S])*?-->/g, by: () => '' },
  {
    what: 'character references',
    pattern: new RegExp(`&(?=#\\d|#x[\\da-f]|(?!(?:${keepReferences});)[a-z][a-z0-9]{1,40};)`, 'gi'),
    by: () => '&amp;',
  },
  { what: 'images', pattern: /(?<!!)!+(?=\[)/g, by: () => '' },
  {
    what: 'links',
    pattern: /(\]\(\s{0,9}<?|\]:\s{0,9}<?|<)(?:javascript|vbscript|data|file|blob):/gi,
    by: (_, open = '') => `${open}#`,
  },
  {
    what: 'long addresses',
    pattern: /(:\/\/[^\s?#()<>\]]{1,500})[?#][^\s()<>\]]{60,}/g,
    by: (_, address = '') => address,
  },
  { what: 'addresses with a user', pattern: /:\/\/[^\s/?#@()<>\]]{1,200}@/g, by: () => '://' },
  { what: 'autolinks', pattern: /<(https?:\/\/[^\s<>]{1,2000})>/gi, by: (_, address = '') => address },
  { what: 'HTML', pattern: /<(?=[a-z/!?])/gi, by: () => '&lt;' },
  // GitHub reads names of users in ASCII letters. The character before must not be one of those (then it is an address).
  { what: 'mentions', pattern: /(?<![A-Za-z0-9_])@(?=[\p{L}\p{N}&\\])/gu, by: () => `@${joiner}` },
  { what: 'references to other repositories', pattern: /#(?=\d)(?<=[\w.-]\/[\w.-]{1,100}#)/g, by: () => `#${joiner}` },
  {
    what: 'closing keywords',
    pattern: /\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?[ \t]{1,9})#(?=\d)/gi,
    by: (_, verb = '', gap = '') => `${verb}${gap}#${joiner}`,
  },
  // Bots obey them: /merge, /approve.
  {
    what: 'commands',
    pattern: /^([ \t]{0,9})\/(?=[a-z][a-z-]{0,40}(?:[ \t]|$))/gim,
    by: (_, gap = '') => `${gap}${joiner}/`,
  },
];

/** Our own marks are searched for in the unparsed text, so not even code may look like one. */
const forgedMarker: Rule = {
  what: 'forged markers',
  pattern: /<!--(?=\s{0,9}oratorio\s{0,9}:)/gi,
  by: () => '<! --',
};

/**
 * Makes a model's text fit to be published under the name of an App: no credential, no mention of a user, nothing that
 * a reader's browser fetches, nothing hidden, no fence left open. Code keeps its characters: it mentions no user. A text
 * with a credential is blocked: the review then waits for a user.
 *
 * @param secrets texts that must never leave: keys and tokens of this process. Those shorter than `shortestUncertainSecret` are ignored.
 */
export function scanOutput(text: string, secrets: readonly string[] = []): ScannedText {
  return scan(text, secrets, (clean, changes) => {
    const parts = markdownParts(clean);
    const safe = parts.map((part) => (part.isCode ? part.text : proseRules.reduce(applied(changes), part.text)));
    return applied(changes)(safe.join(''), forgedMarker);
  });
}

/**
 * Checks a text that is published unchanged between fences, such as a suggestion: no credential, nothing hidden. The result
 * stays code.
 */
export function scanCode(text: string, secrets: readonly string[] = []): ScannedText {
  return scan(text, secrets, (clean, changes) => applied(changes)(clean, forgedMarker));
}

function scan(
  text: string,
  secrets: readonly string[],
  tame: (text: string, changes: Set<string>) => string,
): ScannedText {
  const changes = new Set<string>();
  const change = applied(changes);
  const unix = text.replaceAll('\r\n', '\n');
  const seen = change(unix, { what: 'invisible characters', pattern: invisible, by: () => '' });
  const clean = tame(change(seen, { what: 'control characters', pattern: control, by: () => '' }), changes);
  // Once more: a removed part may have stood between the halves of a secret.
  const leaked = leakIn(text, secrets) ?? (clean === text ? undefined : leakIn(clean, secrets));
  if (leaked === undefined) return { text: clean, blockedBy: null, changes: [...changes] };
  return {
    text: '',
    blockedBy: { code: 'draftContainsSecret', message: `The text seems to contain ${leaked}.` },
    changes: [],
  };
}

const applied =
  (changes: Set<string>) =>
  (text: string, { what, pattern, by }: Rule): string =>
    text.replace(pattern, (...found) => {
      changes.add(what);
      return by(...(found as string[]));
    });
