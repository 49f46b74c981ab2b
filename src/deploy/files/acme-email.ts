import { DeployError } from '../errors.ts';

const atom = '[a-z0-9_+-]+';
const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const address = new RegExp(`^(?=.{1,64}@)${atom}(?:\\.${atom})*@(?=.{1,253}$)(?:${label}\\.)+(?=[a-z])${label}$`, 'i');

/**
 * Checks an e-mail address for the certificate authority; returns it unchanged. Narrower than RFC 5321: it becomes a word of the
 * gateway's file, where quotes, braces, spaces and `#` mean something.
 * @throws DeployError `invalidInput`
 */
export function acmeEmail(text: string): string {
  // RFC 5321, section 4.5.3.1.3: a path has 256 octets, with its two angle brackets.
  if (text.length <= 254 && address.test(text)) return text;
  throw new DeployError(
    'invalidInput',
    'The e-mail address for certificates is not one that can be used.',
    'Give an address like ops@example.com: ASCII letters, digits and . _ + - before the @, a DNS name after it.',
  );
}
