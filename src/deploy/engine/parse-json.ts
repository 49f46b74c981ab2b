/** Parses the output of a program; null when it is not JSON, which the caller reports. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // An invalid answer counts as none.
    return null;
  }
}
