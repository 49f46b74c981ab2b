/** What a program has printed, null when that is no JSON: whoever asked says so in its own words. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // As good as no answer.
    return null;
  }
}
