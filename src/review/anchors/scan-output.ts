/** Why a text is not published. */
export interface Blocked {
  readonly code: 'draftContainsSecret';
  readonly message: string;
}
export interface ScannedText {
  readonly text: string;
  readonly blockedBy: Blocked | null;
  /** What was taken out or made harmless, in words. */
  readonly changes: readonly string[];
}

/**
 * Patterns of credentials that are known by their look. A finding that quotes one would publish it once more: the review then
 * waits for a person.
 */
const credentials: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ['a GitHub token', /\bgh[opsur]_[A-Za-z0-9_.-]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}/],
  ['an AWS access key', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['a Slack token', /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/],
  ['a Google API key', /\bAIza[0-9A-Za-z_-]{35}\b/],
  ['a Stripe key', /\b[rs]k_live_[0-9A-Za-z]{16,}/],
  ['an API key', /\bsk-(?:[A-Za-z]+-)?[A-Za-z0-9_-]{20,}/],
  ['a JSON Web Token', /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/],
  ['a password in a URL', /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:[^\s/@]{3,}@/i],
];

/** Characters that turn text around, or cannot be seen (Trojan Source, CVE-2021-42574). Joiners of emoji stay. */
const invisible = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;
const control = /[^\P{Cc}\n\t]/gu;

/**
 * Makes what a model wrote fit to be published under the name of an App: no credential, nobody called by name, nothing that
 * a reader's browser fetches, nothing hidden. Code keeps its characters: what a fence or back-ticks hold cannot call anybody.
 *
 * @param secrets texts that must never leave: keys and tokens of this process
 */
export function scanOutput(text: string, secrets: readonly string[] = []): ScannedText {
  const leaked = leakIn(text, secrets);
  if (leaked !== undefined) {
    return {
      text: '',
      blockedBy: { code: 'draftContainsSecret', message: `The text seems to contain ${leaked}.` },
      changes: [],
    };
  }
  const changes = new Set<string>();
  const replaced = (input: string, pattern: RegExp, by: string | ((...found: string[]) => string), what: string) =>
    input.replace(pattern, (...found) => {
      changes.add(what);
      return typeof by === 'string' ? by : by(...(found as string[]));
    });
  let clean = replaced(text.replaceAll('\r\n', '\n'), invisible, '', 'invisible characters');
  clean = replaced(clean, control, '', 'control characters');
  clean = outsideCode(clean, (prose) => {
    let safe = replaced(prose, /<!--[\s\S]*?(?:-->|$)/g, '', 'HTML comments');
    safe = replaced(safe, /!\[([^\]]*)\]\(([^)]*)\)/g, (_, alt = '') => alt, 'images');
    safe = replaced(safe, /!\[([^\]]*)\]\[[^\]]*\]/g, (_, alt = '') => alt, 'images');
    safe = replaced(safe, /<\/?[a-z][^>]*>/gi, (tag = '') => tag.replace('<', '&lt;'), 'HTML');
    // A zero-width joiner behind the sign: it reads the same, and calls nobody.
    safe = replaced(safe, /(^|[^\p{L}\p{N}_`])@(?=[\p{L}\p{N}])/gu, (_, before = '') => `${before}@\u200d`, 'mentions');
    safe = replaced(
      safe,
      /\b([\w.-]+\/[\w.-]+)#(?=\d)/g,
      (_, repository = '') => `${repository}#\u200d`,
      'references to other repositories',
    );
    return replaced(
      safe,
      /\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+)#(?=\d)/gi,
      (_, verb = '', gap = '') => `${verb}${gap}#\u200d`,
      'closing keywords',
    );
  });
  return { text: clean, blockedBy: null, changes: [...changes] };
}

function leakIn(text: string, secrets: readonly string[]): string | undefined {
  // Also when it was broken up by characters that cannot be seen.
  const plain = text.replace(invisible, '');
  if (secrets.some((secret) => secret.length >= 8 && plain.includes(secret))) return 'a secret of this server';
  return credentials.find(([, pattern]) => pattern.test(plain))?.[0];
}

/** Fenced blocks and code spans as CommonMark reads them, roughly: what is not surely code is prose. */
const code =
  /(^|\n)( {0,3})(`{3,}|~{3,})[^\n]*\n[\s\S]*?\n {0,3}\3[`~]*[ \t]*(?=\n|$)|(?<!`)(`+)(?!`)[^\n]*?[^`]\4(?!`)/g;

function outsideCode(text: string, change: (prose: string) => string): string {
  let result = '';
  let from = 0;
  for (const match of text.matchAll(code)) {
    result += change(text.slice(from, match.index)) + match[0];
    from = match.index + match[0].length;
  }
  return result + change(text.slice(from));
}
