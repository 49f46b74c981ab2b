/** `28.2.2`, `v2.40.3-3`, `podman version 4.3.1`: the first number with a dot in a text, null without one. */
export function versionIn(text: string): string | null {
  return /(?<![\d.])\d+\.\d+(?:\.\d+)?/.exec(text)?.[0] ?? null;
}

/** Whether `version` is `least` or later. */
export function isAtLeast(version: string, least: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(least)];
  const differs = theirs.findIndex((number, at) => (ours[at] ?? 0) !== number);
  return differs === -1 || (ours[differs] ?? 0) > (theirs[differs] ?? 0);
}

const numbersOf = (version: string): number[] => version.split('.').map(Number);
