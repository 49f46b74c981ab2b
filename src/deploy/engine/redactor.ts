import { redacted, redactorFor } from '../../lib/index.ts';

/** Replaces secrets in a text. */
export type Redactor = (text: string) => string;

/** Texts that look like a secret. The first group, where there is one, stays. */
const patterns: readonly RegExp[] = [
  // Names and passwords in addresses.
  /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+:[^\s/@]*(?=@)/gi,
  // Tokens of GitHub, by their prefixes.
  /\b(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{20,})/g,
  /(\bauthorization["']?\s*[:=]\s*["']?(?:basic|bearer|token)\s+)[^\s"']+/gi,
  /(\b[A-Z0-9_]*(?:TOKEN|SECRET|API_KEY|PASSWORD)=)[^\s'"]+/g,
];

/** Makes a function that replaces `secrets` and texts that look like a secret. Pass whole lines. */
export function outputRedactorFor(secrets: readonly string[]): Redactor {
  const withoutKnown = redactorFor(secrets);
  return (text) => patterns.reduce((rest, pattern) => rest.replace(pattern, hide), withoutKnown(text));
}

const hide = (_found: string, kept: unknown): string => `${typeof kept === 'string' ? kept : ''}${redacted}`;
