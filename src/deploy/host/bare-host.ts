/**
 * The part of a URL-shaped text where a host would be; only ever a suggestion, and judged like anything typed. Empty where an
 * `@` comes after the first `/`, `?` or `#`: what stands before might be a password with such a character in it.
 */
export function bareHost(text: string): string {
  const rest = text.replace(/^[a-z][a-z0-9+.-]*:(?=\/\/)/i, '').replace(/^\/\//, '');
  if (/[/\\?#].*@/su.test(rest)) return '';
  return rest
    .replace(/[/\\?#].*$/su, '')
    .replace(/^.*@/su, '')
    .replace(/^\*\./, '')
    .replace(/^(\[[^\]]*\]|[^:]*):\d*$/u, '$1');
}
