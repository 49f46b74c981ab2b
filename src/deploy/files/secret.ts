import { randomBytes } from 'node:crypto';
import { defaults } from '../defaults.ts';
import { DeployError } from '../errors.ts';

const { min, max } = defaults.secretLength;

/** Why a text cannot be a secret that goes into `.env` and into GitHub's form. */
export const secretRefusals = {
  empty: 'is empty',
  severalLines: 'has more than one line',
  tooShort: `is shorter than ${min} characters`,
  tooLong: `is longer than ${max} characters`,
  whitespace: 'contains white space',
  notPrintable: 'contains a character that is not printable ASCII',
  quote: 'contains a quote',
  backslash: 'contains a backslash',
} as const satisfies Record<string, string>;

export type SecretRefusal = keyof typeof secretRefusals;
export type CheckedSecret = { readonly secret: string } | { readonly refused: SecretRefusal };

const forbidden: readonly (readonly [RegExp, SecretRefusal])[] = [
  [/[\r\n]/, 'severalLines'],
  [/\s/, 'whitespace'],
  [/[^\x21-\x7e]/, 'notPrintable'],
  [/["'`]/, 'quote'],
  [/\\/, 'backslash'],
];

/** Creates an unguessable secret: 32 random bytes in base64url, 43 characters (specification §4.4). */
export const newSecret = (): string => randomBytes(defaults.secretBytes).toString('base64url');

/** Checks the text of a file or a prompt: one line of 16 to 256 plain characters; line breaks at its end do not count. */
export function checkSecretText(text: string): CheckedSecret {
  const secret = text.replace(/[\r\n]+$/, '');
  const refused = refusalOf(secret);
  return refused === undefined ? { secret } : { refused };
}

function refusalOf(secret: string): SecretRefusal | undefined {
  if (secret === '') return 'empty';
  const found = forbidden.find(([pattern]) => pattern.test(secret));
  if (found) return found[1];
  if (secret.length < min) return 'tooShort';
  return secret.length > max ? 'tooLong' : undefined;
}

/**
 * Returns a text that passes `checkSecretText`.
 * `what` names the secret for people: `The secret in hook.secret`.
 * @throws DeployError (secretRefused), never with the text in it
 */
export function secretOf(text: string, what: string): string {
  const checked = checkSecretText(text);
  if ('secret' in checked) return checked.secret;
  throw new DeployError(
    'secretRefused',
    `${what} ${secretRefusals[checked.refused]}.`,
    `Use ${min} to ${max} letters, digits and signs on one line, e.g. of: openssl rand -hex 32`,
  );
}
