/** Longest address that becomes a link. */
const maxChars = 4_096;

/**
 * The address of a link in text of a model, or null for one that must not be followed. Only `http`, `https` and `mailto`:
 * anything else can run a script, open a program, or name a file of this origin.
 */
export function safeHref(href: string): string | null {
  if (href.length > maxChars) return null;
  try {
    const { protocol, href: address } = new URL(href.trim());
    return protocol === 'http:' || protocol === 'https:' || protocol === 'mailto:' ? address : null;
  } catch {
    // A relative address would lead into this page.
    return null;
  }
}
