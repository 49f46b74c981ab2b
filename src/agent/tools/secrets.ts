import { redactorFor } from '../../lib/index.ts';

/** True when `text`, which is about to leave this process, holds a spelling of one of `secrets`. */
export function revealsSecret(text: string, secrets: readonly string[]): boolean {
  const redact = redactorFor(secrets);
  return [text, decoded(text)].some((spelling) => redact(spelling) !== spelling);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not an encoded text: its own spelling is all there is.
    return text;
  }
}
