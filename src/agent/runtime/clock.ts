let at = 0;
let text = '';

/** Now, as the protocol writes times. One turn asks a dozen times within a millisecond, and to write a date is not cheap. */
export function timestamp(): string {
  const now = Date.now();
  if (now !== at) {
    at = now;
    text = new Date(now).toISOString();
  }
  return text;
}
