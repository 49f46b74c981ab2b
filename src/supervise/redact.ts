/** Stands where a secret stood. */
export const redacted = '[redacted]';

/** `text` with every occurrence of `secrets` replaced, also in the spelling they have inside a URL. Longer ones go first, so that no remainder of one that contains another is left. */
export function redact(text: string, secrets: readonly string[]): string {
  const spellings = new Set(
    secrets.filter((secret) => secret !== '').flatMap((secret) => [secret, urlSpelling(secret)]),
  );
  const longestFirst = [...spellings].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, secret) => rest.replaceAll(secret, () => redacted), text);
}

function urlSpelling(secret: string): string {
  try {
    return encodeURIComponent(secret);
  } catch {
    // A lone surrogate has no spelling in a URL.
    return secret;
  }
}
